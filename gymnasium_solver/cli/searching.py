"""`gsolve sweep`: search a space of configs with Optuna."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.api import texts
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Jobs, Json, Quiet, RunsDir, Set, Trust
from gymnasium_solver.errors import EXIT_INTERRUPTED, ConfigError

if TYPE_CHECKING:
    from gymnasium_solver.verify.sweeping.search import State

EXAMPLES = """\b
Examples:
  gsolve sweep CartPole-v1:ppo --trials 20               the usual fields
  gsolve sweep CartPole-v1:ppo --space space.yaml        ranges of your own
  gsolve sweep CartPole-v1:ppo --budget 30m --name mine  as long as this
  gsolve sweep --resume mine --trials 60                 go on with it
  gsolve sweep CartPole-v1:ppo --storage postgresql://db/sweeps

\b
A space is a YAML file of fields with a range or choices:
  policy_lr: {low: 1e-4, high: 1e-2, log: true}
  n_epochs: {low: 2, high: 20, step: 2}
  batch_size: [64, 128, 256]
  ent_coef: {start: {low: 0, high: 0.05}, end: 0}

\b
Exit codes:
  0 done    2 bad input    130 interrupted, and saved
"""


def sweep(
    ref: Annotated[
        str | None,
        typer.Argument(metavar="ENV:VARIANT", help="The config to search around; not needed with --resume."),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option("--space", metavar="FILE", help="YAML of what may change [default: the usual fields]."),
    ] = None,
    set_: Set = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", "-n", min=1, help="Configs to try in all [default: 30, or what --budget allows]."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Stop searching after e.g. 90s, 10m, 2h.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Seeds of each trial; its value is their mean.")] = 3,
    sampler: Annotated[
        str, typer.Option("--sampler", help="What suggests configs: tpe, random, cmaes, qmc or grid.")
    ] = "tpe",
    pruner: Annotated[
        str, typer.Option("--pruner", help="What ends bad trials early: median, hyperband or none.")
    ] = "median",
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective", help="steps or seconds to the threshold, or return [default: steps if there is one]."
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option("--storage", metavar="URL", help="Optuna storage, to share it [default: a file in the sweep]."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the sweep; one that exists is continued.", show_default=False)
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="NAME", help="Continue a sweep as it was started.")
    ] = None,
    confirm_seeds: Annotated[
        int, typer.Option("--confirm-seeds", min=0, help="Fresh seeds to check the winner on; 0: do not check.")
    ] = 5,
    jobs: Jobs = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for better hyperparameters with Optuna.

    Every training is an ordinary run, with the sweep as its group. Trials that fall behind are pruned on their learning
    curve. The winner is trained again on fresh seeds and compared with the config the search started from. Writes
    report.md and the pictures into the sweep's directory, and the winner as a variant: best.yaml where fresh seeds show
    it to be better, candidate.yaml where they do not, or were not trained, and none where it is worse. Ctrl-C saves and
    stops.
    """
    if resume is not None and (ref is not None or name is not None or space is not None or set_ or objective):
        raise ConfigError(
            "--resume continues a sweep as it was; leave out ENV:VARIANT, --name, --space, -s, --objective"
        )
    with _view(quiet) as watch:
        document = api.sweep(
            ref,
            overrides=tuple(set_ or ()),
            space=space,
            trials=trials,
            budget=budget,
            seeds=seeds,
            sampler=sampler,
            pruner=pruner,
            objective=objective,
            storage=storage,
            name=resume or name,
            jobs=jobs,
            confirm_seeds=confirm_seeds,
            runs_dir=runs_dir,
            watch=watch,
        )
    if json:
        output.emit_json(document)
    else:
        _emit(document)
    if document["interrupted"]:
        output.message(f"interrupted, and saved; continue with: gsolve sweep --resume {document['name']}")
        raise typer.Exit(EXIT_INTERRUPTED)


@contextlib.contextmanager
def _view(quiet: bool) -> Iterator[Callable[[State], None]]:
    """A line a trial; on a terminal also what is going on, below them."""
    if quiet:
        yield lambda _: None
    elif not output.is_terminal(sys.stderr):
        yield lambda state: output.message(state.line) if state.line else None
    else:
        from rich.live import Live
        from rich.text import Text

        with Live(Text(""), console=output.console(sys.stderr), transient=True, auto_refresh=False) as live:

            def show(state: State) -> None:
                if state.line:
                    live.console.print(state.line, soft_wrap=True)
                of = f" of {state.of}" if state.of is not None else ""
                words = [f"{state.done}{of} trials", state.best, *state.going]
                live.update(
                    Text(" · ".join(word for word in words if word), style="dim", overflow="ellipsis"), refresh=True
                )

            yield show


def _emit(document: dict[str, Any]) -> None:
    summary, table, bars = texts.sweep(document)
    output.emit_prose("\n".join(summary))
    if document["top"]:
        output.emit("")
        output.emit_table(("TRIAL", "VALUE", "SOLVED", "CHANGES"), table, right=("TRIAL", "VALUE"))
    if document["importance"]:
        output.emit_prose("\nWhat mattered (how well each field separates the better half of the trials from the rest)")
        output.emit("\n".join(bars))
    output.emit("")
    if file := document["variant_file"]:
        name = "use it" if file == "best.yaml" else "try it"
        output.emit_facts([(name, document["best"]["command"]), ("variant", str(Path(document["directory"]) / file))])
    output.emit_facts([("report ", str(document["report"]))])
