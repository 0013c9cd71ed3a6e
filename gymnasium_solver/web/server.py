"""`gsolve serve`: the address, and the server on it."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from gymnasium_solver.api.listening import in_url, listen
from gymnasium_solver.errors import MissingExtraError
from gymnasium_solver.web.settings import Settings, require_safe

LAST_SECONDS = 3  # that requests in progress have when the server ends


def serve(settings: Settings, *, say: Callable[[str], None], open_page: bool = False) -> None:
    """Until it is interrupted."""
    require_safe(settings)
    try:
        import uvicorn

        from gymnasium_solver.web.app import create_app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("fastapi", "uvicorn", "starlette", "anyio"):
            raise MissingExtraError("gsolve serve", "web") from error
        raise

    remedy = "choose another with --port, or --port 0 for any that is free"
    listening = listen(settings.host, settings.port, remedy)
    port = listening.getsockname()[1]
    settings = replace(settings, port=port)
    name = socket.gethostname() if settings.host in ("0.0.0.0", "::") else in_url(settings.host)
    address = f"http://{name}:{port}/" + (f"?token={settings.token}" if settings.token else "")
    say(f"{settings.runs_dir} at {address}{' (read-only)' if settings.read_only else ''}; Ctrl-C ends")
    if open_page:
        threading.Timer(1.0, webbrowser.open, (address,)).start()
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody is to say by a header that he is somebody else
        timeout_graceful_shutdown=LAST_SECONDS,
        ws="none",
    )
    server = uvicorn.Server(config)
    handle_exit = server.handle_exit

    def leave(sig: int, frame: FrameType | None) -> None:
        app.app.state.events.end_streams()
        handle_exit(sig, frame)

    server.handle_exit = leave  # type: ignore[method-assign]
    server.run(sockets=[listening])
