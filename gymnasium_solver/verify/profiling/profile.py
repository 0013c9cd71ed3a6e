"""Where the time of a training goes, what limits it, and whether other environments, another engine or other threads
would be faster.

Measured here and now: a short training with a clock around its parts, then short trainings without the clock.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import build_config, load_config, to_dict
from gymnasium_solver.errors import ConfigError, writing
from gymnasium_solver.plain import plain
from gymnasium_solver.runs.layout import replace_file, to_json
from gymnasium_solver.verify.profiling.description import describe
from gymnasium_solver.verify.profiling.limits import limit_of
from gymnasium_solver.verify.profiling.measure import measure
from gymnasium_solver.verify.profiling.plot import draw
from gymnasium_solver.verify.profiling.text import to_markdown
from gymnasium_solver.verify.profiling.threads import compare_threads
from gymnasium_solver.verify.profiling.trials import compare

LEAST_SECONDS = 2.0
TEXT, PICTURE, NUMBERS = "profile.md", "profile.png", "profile.json"


def profile(
    ref: str,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    *,
    seconds: float = 10.0,
    out: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The document that `gsolve profile --json` prints, written to `out` too. Everything is trained in a directory that
    is thrown away."""
    if not (math.isfinite(seconds) and seconds >= LEAST_SECONDS):
        raise ConfigError(
            f"--seconds {seconds:g} is too short to measure anything: compiling alone takes a second or more; use at "
            f"least {LEAST_SECONDS:g}"
        )
    config = load_config(ref, overrides, asked=True)
    if out is not None:
        _make_directory(out)
    with tempfile.TemporaryDirectory(prefix="gsolve-profile-") as directory:
        say(f"profiling {config.env_id} {config.algo_id} for {seconds:g} s")
        measured = measure(config, Path(directory), seconds)
        document = describe(config, measured)
        say(f"{document['engine']}, {config.n_envs} environments: {document['steps_per_second']:,.0f} steps/s")
        trials = compare(config, measured, Path(directory), seconds, say)
        trials["notes"] = document["notes"] + trials["notes"]
        document |= {"limit": limit_of(document, to_dict(config), trials["trials"])} | trials
        changed = trials["recommendation"]["set"] if trials["recommendation"] else {}
        best = build_config({**to_dict(config), **changed}, config.env_id)
        document["threads"] = compare_threads(best, Path(directory), seconds, say, document["notes"])
    if out is not None:
        _write(document, out)
        say(f"wrote {TEXT}, {PICTURE} and {NUMBERS} into {out}")
    return document


def _make_directory(out: Path) -> None:
    """Before anything is measured: a minute later is late to learn that nothing can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be created ({error.strerror}); choose another directory") from error


def _write(document: Mapping[str, Any], out: Path) -> None:
    files = {
        TEXT: to_markdown(document, PICTURE).encode(),
        PICTURE: draw(document),
        NUMBERS: to_json(plain(document), indent=2).encode() + b"\n",
    }
    with writing(out, "choose another directory with --out"):
        for name, content in files.items():
            replace_file(out / name, [content])
