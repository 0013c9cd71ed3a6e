"""Where the index is kept: a SQLite file beside the runs, or a PostgreSQL database that several hosts share."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from gymnasium_solver.errors import ConfigError, MissingExtraError, SolverError

if TYPE_CHECKING:
    import psycopg

FILE = ".index.sqlite"
PATIENCE = 30.0  # seconds to wait for another process
T = TypeVar("T")


class Store(Protocol):
    """Statements have `?` for each parameter."""

    generation: int  # counts how often everything stored was lost

    def check(self) -> None: ...
    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...
    def write(self, statement: str, many: Sequence[Sequence[Any]]) -> None: ...
    def close(self) -> None: ...


class SqliteStore:
    """A cache: whatever is wrong with the file, it begins anew, and where no file can be written it is in memory."""

    def __init__(self, runs_dir: Path, schema: str) -> None:
        self.generation = 0
        self._path: Path | None = runs_dir / FILE
        self._schema = schema.format(text="TEXT")
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def check(self) -> None:
        """Whether the file is still the one that was opened: another process may have begun anew, a user deleted it."""
        with self._lock:
            if self._connection is not None and self._path is not None and _identity(self._path) != self._file:
                self._lose()

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._do(lambda connection: connection.execute(statement, parameters).fetchall())

    def write(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.executemany(statement, many)

        self._do(work)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            for _ in range(3):
                try:
                    return work(self._opened())
                except sqlite3.Error as error:
                    if self._connection is not None and _is_mistaken(error):
                        raise
                    self._lose(error)
            return work(self._opened())

    def _lose(self, error: sqlite3.Error | None = None) -> None:
        """Drop the connection; with an error also the file if it is damaged, or the wish for one if it cannot be."""
        self.generation += 1
        with contextlib.suppress(sqlite3.Error):
            self.close()
        self._connection = None  # whether or not it could be closed
        if error is None or self._path is None:
            return
        if isinstance(error, sqlite3.OperationalError) and not _is_mistaken(error):  # locked, full, read-only
            self._path = None
            return
        try:
            for suffix in ("", "-wal", "-shm", "-journal"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        except OSError:
            self._path = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            # Any thread may use it, one at a time.
            connection = sqlite3.connect(
                self._path or ":memory:", timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                if self._path is not None:
                    _write_ahead(connection)
                    self._file = _identity(self._path)
                with _transaction(connection):
                    for statement in self._schema.split(";"):
                        connection.execute(statement)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """So that readers and a writer do not wait for each other. Switching fails at once, whatever the timeout, while
    another process does the same."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.02)


def _is_mistaken(error: sqlite3.Error) -> bool:
    """The statement does not fit the tables. When the file is opened that means a table with other columns."""
    return getattr(error, "sqlite_errorcode", None) in (None, sqlite3.SQLITE_ERROR)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


class PostgresStore:
    """Shared: a connection that broke is made anew, once; what the server refuses is the user's to know."""

    def __init__(self, url: str, schema: str, table: str) -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ConfigError(
                f"the index address begins with {url.partition(':')[0]!r}; give GSOLVE_INDEX_URL the form "
                "postgresql://USER:PASSWORD@HOST/DATABASE, or unset it to keep the index beside the runs"
            )
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("an index in PostgreSQL", "postgres") from None
        self.generation = 0
        self._psycopg = psycopg
        self._url = url
        self._schema, self._table = schema.format(text='TEXT COLLATE "C"'), table
        self._lock = threading.Lock()
        self._connection: psycopg.Connection | None = None

    def check(self) -> None:
        """What the server keeps, it keeps."""

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._do(lambda connection: connection.execute(_numbered(statement), parameters).fetchall())

    def write(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        def work(connection: psycopg.Connection) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(_numbered(statement), many)

        self._do(work)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _do(self, work: Callable[[psycopg.Connection], T]) -> T:
        with self._lock:
            try:
                try:
                    return work(self._opened())
                except (self._psycopg.OperationalError, self._psycopg.InterfaceError):
                    if self._connection is None or not self._connection.broken:
                        raise
                    self._connection = None  # the server went away in between
                    return work(self._opened())
            except self._psycopg.Error as error:
                said = " ".join(str(error).split())
                if password := urlsplit(self._url).password:
                    said = said.replace(password, "…")
                raise SolverError(
                    f"the index in PostgreSQL failed: {said}; check GSOLVE_INDEX_URL and the server, or unset it to "
                    "keep the index beside the runs"
                ) from None  # a traceback would show the password

    def _opened(self) -> psycopg.Connection:
        if self._connection is None:
            connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
            found = connection.execute("SELECT to_regclass(%s)", (self._table,)).fetchone()
            if found is None or found[0] is None:
                with connection.transaction():
                    # Two that create a table at a time disturb each other, even with IF NOT EXISTS.
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x67736F6C7665,))
                    connection.execute(self._schema.encode())
            self._connection = connection
        return self._connection


def _numbered(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
