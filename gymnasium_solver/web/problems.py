"""Every failure as one document: a sentence, and what to do next."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from gymnasium_solver.errors import ConfigError, MissingExtraError, NotFoundError, SolverError
from gymnasium_solver.web.rates import Busy

log = logging.getLogger(__name__)

NEXT_BY_PLACE = (
    ("/api/configs", "GET /api/configs lists the configurations"),
    ("/api/experiments", "GET /api/experiments lists the experiments"),
    ("/api/compare", "GET /api/runs lists the runs"),
    ("/api/runs", "GET /api/runs lists the runs"),
    ("/api", "GET /api/openapi.json describes the interface"),
    ("", "open / for the page, or see /api/openapi.json"),
)


def problem(status: int, sentence: str, next_step: str, headers: Mapping[str, str] | None = None) -> Response:
    content = json.dumps({"error": " ".join(sentence.split()), "next": next_step}, ensure_ascii=False)
    return Response(content.encode(errors="replace"), status, dict(headers or {}), media_type="application/json")


def status_of(error: SolverError) -> int:
    if isinstance(error, Busy):
        return 429
    if isinstance(error, NotFoundError):
        return 404
    # Exit codes tell apart what a process started here failed for.
    if isinstance(error, ConfigError | MissingExtraError) or error.exit_code == ConfigError.exit_code:
        return 422
    return 404 if error.exit_code == NotFoundError.exit_code else 409


def install(app: FastAPI) -> None:
    @app.exception_handler(SolverError)
    async def known(request: Request, error: SolverError) -> Response:
        headers = {"Retry-After": str(error.seconds)} if isinstance(error, Busy) else {}
        return problem(status_of(error), str(error), _next(request), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()]
        return problem(422, "; ".join(found[:5]), "GET /api/openapi.json has the fields and their ranges")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        place = f"{request.method} {request.url.path}"
        sentence = {404: f"there is nothing at {place}", 405: f"{place} is not possible"}.get(error.status_code)
        return problem(error.status_code, sentence or str(error.detail), _next(request), error.headers)

    @app.exception_handler(FileNotFoundError)
    async def gone(request: Request, error: FileNotFoundError) -> Response:
        return problem(404, "what was requested was removed while it was read", _next(request))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        sentence = f"{type(error).__name__}: {error}; this is a bug in gymnasium-solver"
        return problem(500, sentence, "please report it with the server's output")


def _next(request: Request) -> str:
    if request.method == "POST" and request.url.path == "/api/runs":
        return "GET /api/configs lists the configurations, /api/configs/ENV:VARIANT the fields of one"
    return next(step for place, step in NEXT_BY_PLACE if request.url.path.startswith(place))
