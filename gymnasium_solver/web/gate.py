"""What every request passes before it reaches a route: who may ask, from where, how often and how much."""

from __future__ import annotations

import asyncio
import hmac
import math
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser

from gymnasium_solver.api.listening import is_loopback
from gymnasium_solver.web.problems import problem
from gymnasium_solver.web.rates import Buckets
from gymnasium_solver.web.settings import Rate, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope, Send

READING = ("GET", "HEAD", "OPTIONS")
# Plotly puts a <style> element into the page and sizes its drawings by style attributes; it needs no eval for curves.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    """A plain ASGI layer, so that event streams pass through it unbuffered."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        self.app = app
        self._settings = settings
        self._buckets = Buckets()
        self.cookie = f"gsolve_token_{settings.port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets: there are none
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)  # a route may be stricter
                is_static = scope["path"].startswith("/static/")  # scripts are asked after, but not sent again
                headers.setdefault("Cache-Control", "no-cache" if is_static else "no-store")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and scope["method"] not in READING:
            body, refusal = await self._read(Headers(scope=scope), receive)
            receive = _replay(body, receive)
        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        return (
            self._wrong_host(headers)
            or self._wrong_origin(scope, headers)
            or self._no_token(scope, headers)
            or self._too_often(scope)
            or self._read_only(scope)
        )

    def _wrong_host(self, headers: Headers) -> Response | None:
        """A page on the internet may give its own name the address 127.0.0.1; its requests carry that name, but no
        token."""
        if not self._settings.is_local or self._settings.token is not None:
            return None
        name = _host_name(headers.get("host", ""))
        if is_loopback(name) or name == self._settings.host:
            return None
        return problem(403, f"the host {name!r} is not this server", "ask for localhost or 127.0.0.1")

    def _wrong_origin(self, scope: Scope, headers: Headers) -> Response | None:
        """Browsers say which page asks; programs do not, and need not."""
        origin = headers.get("origin")
        is_foreign = origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
        is_elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")  # the latter: another port
        if not is_foreign and not (is_elsewhere and scope["path"].startswith("/api")):
            return None
        return problem(403, "a page from another origin requested this", "open the page that this server serves")

    def _no_token(self, scope: Scope, headers: Headers) -> Response | None:
        """The page itself is no secret, and asks for the token where it is not given one."""
        if self._settings.token is None or scope["path"].startswith("/static/"):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(given.strip()):
            return None
        if self._is_token(cookie_parser(headers.get("cookie", "")).get(self.cookie, "")):
            return None
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/":
            return self._welcome(scope) if self._is_token(asked) else None
        if response := self._throttled(scope, self._settings.limits.refusals):
            return response
        return problem(
            401,
            "this server requires its token",
            "send it as Authorization: Bearer TOKEN, or open /?token=TOKEN in a browser",
            {"WWW-Authenticate": "Bearer"},
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), (self._settings.token or "").encode())

    def _welcome(self, scope: Scope) -> Response:
        """The token goes into a cookie, and out of the address."""
        from starlette.responses import RedirectResponse

        response = RedirectResponse("/", 303)
        token = self._settings.token or ""
        response.set_cookie(self.cookie, token, httponly=True, samesite="lax", secure=scope["scheme"] == "https")
        return response

    def _too_often(self, scope: Scope) -> Response | None:
        limits = self._settings.limits
        if scope["method"] not in READING:
            return self._throttled(scope, limits.writes)
        return self._throttled(scope, limits.local_reads if is_loopback(_client(scope)) else limits.reads)

    def _throttled(self, scope: Scope, rate: Rate) -> Response | None:
        wait = self._buckets.wait(_client(scope), rate)
        if not wait:
            return None
        seconds = math.ceil(wait)
        return problem(429, "too many requests", f"wait {seconds} s", {"Retry-After": str(seconds)})

    def _read_only(self, scope: Scope) -> Response | None:
        if not self._settings.read_only or scope["method"] in READING:
            return None
        return problem(403, "this server only reads", "start one without --read-only")

    async def _read(self, headers: Headers, receive: Receive) -> tuple[bytes, Response | None]:
        """The whole body, if it is small and comes soon."""
        limits = self._settings.limits
        too_large = problem(413, f"a request holds at most {limits.body_bytes:,} bytes", "send less")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limits.body_bytes:
            return b"", too_large
        body = b""
        try:
            async with asyncio.timeout(limits.body_seconds):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > limits.body_bytes:
                        return b"", too_large
                    if not message.get("more_body"):
                        return body, None
        except TimeoutError:
            return b"", problem(408, f"the request did not come within {limits.body_seconds:g} s", "send it again")


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay


def _client(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else "local"


def _host_name(host: str) -> str:
    """Without the port; of an IPv6 address without the brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
