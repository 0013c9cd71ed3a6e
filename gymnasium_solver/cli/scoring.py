"""`gsolve noise-scale` and `gsolve score`: how noisy the gradients of a run are, and how good its solution is."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.api.texts import score_card
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunRef, RunsDir, Trust
from gymnasium_solver.errors import EXIT_OK, EXIT_TARGET_MISSED, ConfigError, writing
from gymnasium_solver.plain import plain

EXAMPLES = """\b
Examples:
  gsolve score @last                                    with its seeds
  gsolve score @last --seeds 1                          this run alone
  gsolve score @last --transfer CartPole-v1:gravity=12  on your task
  gsolve score @last --strict                           5 if one is missed
"""


def noise_scale(
    run: RunRef,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="best|last|epoch=N",
            help="Where to measure [default: up to five checkpoints spread over the training].",
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="Rows of experience per checkpoint [default: 65536].")
    ] = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Measure the gradient noise scale, and the batch size for it.

    Collects fresh rollouts with the run's own configuration, from its checkpoints; nothing is trained. The result is
    kept in the run as noise_scale.json, where diagnose takes it into account.
    """
    with contextlib.redirect_stdout(sys.stderr):
        document = api.noise_scale(run, checkpoint=checkpoint, rows=rows, runs_dir=runs_dir, say=output.message)
    if json:
        output.emit_json(document)
        return
    output.emit_table(
        ("CHECKPOINT", "PART", "NOISE SCALE", "95 % INTERVAL", "|G|²", "TR(Σ)"),
        [_row(entry["checkpoint"], part) for entry in document["checkpoints"] for part in entry["parts"].values()],
        right=("NOISE SCALE",),
    )
    verdict = document["verdict"]
    output.emit(
        f"\n{verdict[0].upper()}{verdict[1:]} (measurable {document['measurable']}).\n"
        f"Note: {document['caveat']} ({document['reference']})."
    )


def _row(checkpoint: str, part: dict[str, Any]) -> tuple[str, ...]:
    if part["noise_scale"] is None:
        interval = f"above {part['low']:,.0f}" if part["low"] else "-"
        scale = "not measurable"
    else:
        high = "no bound" if part["high"] is None else f"{part['high']:,.3g}"
        scale, interval = f"{part['noise_scale']:,.3g}", f"{part['low']:,.3g} to {high}"
    return checkpoint, part["part"], scale, interval, f"{part['signal']:.3g}", f"{part['noise']:.3g}"


def score(
    ref: Annotated[
        str,
        typer.Argument(
            metavar="RUN[/CHECKPOINT]",
            help="Run, group of seeds or experiment, alone (best checkpoint) or with /@best, /@last or /epoch=N.",
        ),
    ],
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=2, help="Fresh episodes of each policy.")] = 100,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Most runs of the same configuration [default: all].")
    ] = None,
    transfer: Annotated[
        list[str] | None,
        typer.Option(
            "--transfer",
            metavar="ENV[:NAME=VALUE,…]",
            help="A similar task, by arguments or attributes; may be given several times [default: those built in].",
        ),
    ] = None,
    noise: Annotated[
        float, typer.Option("--noise", min=0.0, help="Observation noise, as a share of the observations' spread.")
    ] = 0.2,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 5 if a measured target is missed.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it there: .json, .yaml, else text.")
    ] = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    yaml: Annotated[bool, typer.Option("--yaml", help="Print YAML on stdout.")] = False,
) -> int:
    """Score a solution: efficiency, success, spread, robustness.

    All finished runs next to it with the same configuration and other seeds are its seeds. Each figure comes with a
    95 % interval, and with a verdict where there is a target.
    """
    if json and yaml:
        raise ConfigError("--json and --yaml: choose one")
    with contextlib.redirect_stdout(sys.stderr):
        document = api.score(
            ref,
            episodes=episodes,
            seeds=seeds,
            transfer=transfer or (),
            noise=noise,
            runs_dir=runs_dir,
            say=output.message,
        )
    form = "json" if json else "yaml" if yaml else "text"
    output.emit(_rendered(document, form))
    if out is not None:
        _write(out, document, {".json": "json", ".yaml": "yaml", ".yml": "yaml"}.get(out.suffix, form))
    return EXIT_TARGET_MISSED if strict and document["failed"] else EXIT_OK


def _rendered(document: dict[str, Any], form: str) -> str:
    from json import dumps

    if form == "json":
        return dumps(plain(document), indent=2, ensure_ascii=False)
    return score_card(document, as_yaml=form == "yaml")


def _write(path: Path, document: dict[str, Any], form: str) -> None:
    with writing(path, "choose another place with --out"):
        path.write_text(_rendered(document, form).rstrip("\n") + "\n", encoding="utf-8")
