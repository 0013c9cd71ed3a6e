"""`gsolve`: the verbs, and the edge where every failure becomes one line and an exit code.

Only what is light is imported here and in the modules of the verbs (Typer, and `api`, which imports the rest when it is
called), so that `gsolve --help` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, TextIO, cast

import typer

from gymnasium_solver import trust
from gymnasium_solver.cli.front_page import Verbs, start_page
from gymnasium_solver.cli.output import Lasting, emit, error
from gymnasium_solver.errors import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, SolverError

# \b keeps the line breaks of the paragraph that follows it.
EXAMPLES = """\b
Examples:
  gsolve train CartPole-v1:ppo            train to the threshold
  gsolve train CartPole-v1:ppo --seeds 5  five seeds, one report
  gsolve diagnose @last                   what is wrong, what to change
  gsolve verify @last -s policy_lr=1e-3   does this change help?
  gsolve optimize @last                   a better configuration, proven
  gsolve solve LunarLander-v3             until a policy passes
  gsolve play @last --video episode.mp4   watch it act
  gsolve serve --open                     all of it in a browser
"""

# By name: its module here, the function, and what its help ends with.
VERBS: Mapping[str, tuple[str, str, str | None]] = {
    "train": ("training", "train", "EXAMPLES"),
    "watch": ("watching", "watch", "EXAMPLES"),
    "status": ("inspection", "status", None),
    "stop": ("stop", "stop", None),
    "envs": ("configs", "envs", None),
    "config": ("configs", "config", None),
    "runs": ("inspection", "runs", None),
    "show": ("inspection", "show", None),
    "logs": ("logs", "logs", None),
    "report": ("inspection", "report", None),
    "checkpoints": ("inspection", "checkpoints", None),
    "inspect": ("inspecting", "inspect", None),
    "evaluate": ("policies", "evaluate", None),
    "play": ("policies", "play", None),
    "import": ("importing", "import_", None),
    "diagnose": ("diagnosing", "diagnose", "EXAMPLES"),
    "compare": ("comparing", "compare", "EXAMPLES"),
    "insights": ("insights", "insights", "EXAMPLES"),
    "noise-scale": ("scoring", "noise_scale", None),
    "profile": ("profiling", "profile", "EXAMPLES"),
    "validate": ("validating", "validate", "EXAMPLES"),
    "verify": ("experimenting", "verify", "VERIFY_EXAMPLES"),
    "optimize": ("experimenting", "optimize", "OPTIMIZE_EXAMPLES"),
    "solve": ("experimenting", "solve", "SOLVE_EXAMPLES"),
    "sweep": ("searching", "sweep", "EXAMPLES"),
    "score": ("scoring", "score", "EXAMPLES"),
    "regress": ("regressing", "regress", "EXAMPLES"),
    "serve": ("serving", "serve", "EXAMPLES"),
    "mcp": ("serving_mcp", "mcp", "EXAMPLES"),
}


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        emit(f"gsolve {version('gymnasium-solver')}")
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        emit(start_page())


def command_line(arguments: Sequence[str]) -> typer.Typer:
    """With the verb that is asked for, or else with all, which take longer to describe than some take to answer."""
    app = typer.Typer(
        name="gsolve",
        help="Train reinforcement-learning agents, and find out what is wrong with a run.",
        epilog=EXAMPLES,
        cls=Verbs,
        invoke_without_command=True,
        rich_markup_mode=None,  # plain help takes a third of the time
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name in VERBS.keys() & arguments[:1] or VERBS:
        module, function, examples = VERBS[name]
        verb = import_module(f"gymnasium_solver.cli.{module}")
        app.command(name, epilog=examples and getattr(verb, examples))(getattr(verb, function))
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    # NumPy's linear algebra here is small: with more threads than free cores it is a thousand times slower.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with contextlib.redirect_stderr(cast(TextIO, Lasting(sys.stderr))):
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        trust.ask_with(_is_trusted)
    try:
        app = command_line(sys.argv[1:] if arguments is None else arguments)
        result = app(args=arguments, prog_name="gsolve", standalone_mode=False)
    except SolverError as failure:
        error(str(failure))
        return failure.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as failure:
        # Typer's own usage errors; their classes moved between its versions, their two attributes did not.
        if hasattr(failure, "format_message") and hasattr(failure, "exit_code"):
            return _usage_error(failure)
        return _unexpected(failure)
    return result if isinstance(result, int) else EXIT_OK


def _is_trusted(what: str) -> bool:
    return typer.confirm(f"{what}\nImport it?", default=False, err=True)


def _usage_error(failure: Exception) -> int:
    context = getattr(failure, "ctx", None)
    text = failure.format_message()  # type: ignore[attr-defined]
    end = " See:" if text.endswith("?") else "; see:"
    error(f"{text.rstrip('.')}{end} {context.command_path if context else 'gsolve'} --help")
    return failure.exit_code  # type: ignore[attr-defined]


def _unexpected(failure: Exception) -> int:
    if os.environ.get("GSOLVE_DEBUG"):
        import traceback

        traceback.print_exception(failure, file=sys.stderr)
    notes = "".join(f" ({note})" for note in getattr(failure, "__notes__", ()))
    error(
        f"{type(failure).__name__}: {failure}{notes}; this is a bug in gymnasium-solver, please report it with the "
        "traceback that GSOLVE_DEBUG=1 shows"
    )
    return EXIT_FAILURE
