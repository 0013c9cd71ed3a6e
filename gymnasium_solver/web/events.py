"""Live updates: one thread looks at the runs directory, however many clients listen."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.store import Store
from gymnasium_solver.web.answers import as_json
from gymnasium_solver.web.rates import Busy

if TYPE_CHECKING:
    from gymnasium_solver.runs.index.index import Changes

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.4
HEARTBEAT_SECONDS = 10.0
WAITING_EVENTS = 500  # of a client that does not read; then it is told to look at everything anew


class Listener:
    """One client; `run_id` if it wants to hear of that run alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run_id: str | None) -> None:
        self.run_id = run_id
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING_EVENTS)
        self._loop = loop

    def tell(self, event: bytes | None) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: bytes | None) -> None:
        if self.queue.full() or event is None:
            while not self.queue.empty():
                self.queue.get_nowait()
            event = None  # the stream ends; a client that comes back reads everything
        self.queue.put_nowait(event)


class Events:
    def __init__(self, store: Store, most_listeners: int) -> None:
        self._store = store
        self._most = most_listeners
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._seen: dict[str, dict[str, Any]] = {}
        self.has_looked = False
        self._thread = threading.Thread(target=self._watch, name="watch-runs", daemon=True)
        store.listeners.append(self._spread)

    @property
    def listening(self) -> int:
        return len(self._listeners)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._wanted.set()
        self.end_streams()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def end_streams(self) -> None:
        """So that a server that ends need not wait for its clients to go."""
        for listener in list(self._listeners):
            listener.tell(None)

    def require_room(self) -> None:
        if len(self._listeners) >= self._most:
            raise Busy(f"{self._most} clients are listening, which is the most", 30)

    async def stream(self, run_id: str | None) -> AsyncIterator[bytes]:
        """Events until the client goes away or the server ends."""
        listener = Listener(asyncio.get_running_loop(), run_id)
        with self._lock:
            self._listeners.add(listener)
            self._wanted.set()
        try:
            yield b"retry: 2000\n\n" + _event("heartbeat", {"time": time.time()})
            while True:
                try:
                    event = await asyncio.wait_for(listener.queue.get(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    event = _event("heartbeat", {"time": time.time()})
                if event is None:
                    return
                yield event
        finally:
            with self._lock:
                self._listeners.discard(listener)
                if not self._listeners and not self._closing.is_set():
                    self._wanted.clear()

    def rows_read(self, run_id: str) -> None:
        """A large file has been read whole: its curves can be had exactly now."""
        summary = self._store.index.get(run_id) or {}
        self._tell("rows", run_id, {"run_id": run_id, "from": None, "to": summary.get("progress")})

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                self._store.refresh()  # which spaces itself out where it takes long
            except Exception:  # a disk that is away for a moment must not end all live updates
                log.warning("looking for changes failed; trying again", exc_info=True)
            self._closing.wait(LOOK_SECONDS)
            self._wanted.wait()

    def _spread(self, changes: Changes) -> None:
        """After every look at the directory, whoever took it; what the first one finds is no news."""
        if not self.has_looked:
            self.has_looked = True
            return
        for run_id in changes.removed:
            self._seen.pop(run_id, None)
            self._tell("deleted", run_id, {"run_id": run_id})
        if not self._listeners:
            self._seen.clear()
            return
        for run_id in (*changes.added, *changes.changed):
            summary = self._store.index.get(run_id)
            if summary is None:
                continue
            before = self._seen.get(run_id, {})
            self._seen[run_id] = {name: summary.get(name) for name in ("rows", "progress")}
            self._tell("run", run_id, {"summary": summary})
            if summary.get("rows") != before.get("rows"):
                between = {"from": before.get("progress"), "to": summary.get("progress")}
                self._tell("rows", run_id, {"run_id": run_id, **between})

    def _tell(self, kind: str, run_id: str, data: dict[str, Any]) -> None:
        event = None
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            if listener.run_id in (None, run_id):
                event = event or _event(kind, data)
                listener.tell(event)


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: ".encode() + as_json(data) + b"\n\n"
