"""The application: routes, gate, and what lives as long as the server does."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from fastapi import FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from gymnasium_solver import trust
from gymnasium_solver.api import episodes
from gymnasium_solver.api.store import Store
from gymnasium_solver.errors import MissingExtraError
from gymnasium_solver.web import documents, other_routes, problems, run_routes
from gymnasium_solver.web.answers import Answers
from gymnasium_solver.web.events import Events
from gymnasium_solver.web.gate import Gate
from gymnasium_solver.web.settings import Settings

STATIC = Path(__file__).parent / "static"
HEAVY_AT_ONCE = 2  # diagnoses and comparisons
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": documents.Problem, "description": text}
    for status, text in {
        400: "The request is malformed.",
        401: "The token is missing.",
        403: "Not allowed from here, or the server only reads.",
        404: "There is no such thing; the nearest is named.",
        409: "Not possible in the current state.",
        413: "Too large.",
        422: "A value that cannot be used.",
        429: "Too often, or busy; Retry-After says when.",
    }.items()
}


def create_app(settings: Settings) -> Gate:
    """An ASGI application."""
    store = Store(settings.runs_dir, when_read=lambda run_id: events.rows_read(run_id))
    events = Events(store, settings.limits.streams)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        app.state.heavy = anyio.CapacityLimiter(HEAVY_AT_ONCE)
        events.start()
        try:
            yield
        finally:
            episodes.end()
            events.close()
            store.close()

    app = FastAPI(
        title="gymnasium-solver",
        version=version("gymnasium-solver"),
        description="Runs, their curves, diagnosis and comparison; the same documents as `gsolve --json` prints.",
        lifespan=living,
        openapi_url="/api/openapi.json",
        docs_url=None,  # its page loads scripts from the internet
        redoc_url=None,
        responses=REFUSALS,
    )
    app.state.settings, app.state.store, app.state.events = settings, store, events
    app.state.answers = Answers()
    problems.install(app)
    app.add_middleware(_Closed, modules=() if settings.read_only else settings.allow_code)
    app.include_router(run_routes.router)
    app.include_router(other_routes.router)
    app.add_api_route("/", page, include_in_schema=False)
    app.add_api_route("/static/plotly.min.js", plotly, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False))
    return Gate(app, settings)


class _Closed:
    """Whatever a request sets off imports no code but what the server was started with."""

    def __init__(self, app: ASGIApp, modules: tuple[str, ...]) -> None:
        self._app, self._modules = app, modules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with trust.closed(self._modules):
            await self._app(scope, receive, send)


def page() -> Response:
    return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})


def plotly() -> Response:
    """The script in the installed package: nothing comes from the internet."""
    found = importlib.util.find_spec("plotly")
    script = Path(found.origin).parent / "package_data" / "plotly.min.js" if found and found.origin else None
    if script is None or not script.is_file():
        raise MissingExtraError("drawing curves", "web")
    return FileResponse(script, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})
