"""Every failure a user can meet, each with its exit code. A message says what is wrong, where, and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_DIVERGED = 4
EXIT_TARGET_MISSED = 5
EXIT_INTERRUPTED = 130


class SolverError(Exception):
    """Root of the tree: caught once, at the edge, and shown as one sentence."""

    exit_code = EXIT_FAILURE


class ConfigError(SolverError):
    """A config field, override or command-line value that cannot be used."""

    exit_code = EXIT_USAGE


class TrustError(ConfigError):
    """Code that a file names, and that nobody here has allowed."""


class NotFoundError(SolverError):
    """A run, checkpoint, environment or variant that does not exist."""

    exit_code = EXIT_NOT_FOUND


class DivergedError(SolverError):
    """Training produced NaN or infinity."""

    exit_code = EXIT_DIVERGED


class EnvironmentFault(SolverError):
    """The environment raised, or returned NaN, a wrong shape or a wrong type."""


class CheckpointError(SolverError):
    """A checkpoint that is corrupt, incomplete, or of another shape than the run."""


class MissingExtraError(SolverError):
    """An optional dependency is not installed."""

    exit_code = EXIT_USAGE

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the [{extra}] extra; install it with: pip install 'gymnasium-solver[{extra}]'"
        )


@contextmanager
def writing(what: object, remedy: str = "make it writable, or choose another place with --runs-dir") -> Iterator[None]:
    """Where it cannot be written, one sentence says so."""
    try:
        yield
    except OSError as error:
        raise SolverError(f"cannot write {what}: {error.strerror or error}; {remedy}") from error
