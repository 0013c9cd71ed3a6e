"""`gsolve insights`: what all runs of an environment say together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir
from gymnasium_solver.cli.sparkline import sparkline
from gymnasium_solver.plain import listed

EXAMPLES = """\b
Examples:
  gsolve insights CartPole-v1                  what works, what matters
  gsolve insights CartPole-v1 --metric return  judged by the return
  gsolve insights CartPole-v1 --json           all of it, for a program
"""
PERIODS = 12  # of the table over time
NAMES = 8  # of settings in a list
UNITS = {"frames": "FRAMES TO THRESHOLD", "seconds": "SECONDS TO THRESHOLD", "return": "FINAL REWARD"}


class Metric(StrEnum):
    frames = "frames"
    seconds = "seconds"
    return_ = "return"


def insights(
    env_id: Annotated[str, typer.Argument(metavar="ENV", help="Environment whose runs to analyse.")],
    metric: Annotated[
        Metric, typer.Option("--metric", help="What is good: few frames or seconds to the threshold, or the return.")
    ] = Metric.frames,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Say what all runs of an environment show together.

    The best configurations over seeds, the settings that separate solved from failed runs, and whether results get
    better over time. Works on runs of ours and on imported ones.
    """
    document = api.insights(env_id, metric=metric.value, runs_dir=runs_dir)
    if json:
        output.emit_json(document)
        return
    _emit_head(document, metric.value)
    _emit_best(document)
    _emit_separating(document["separating"])
    _emit_over_time(document["over_time"], _unit(document))


def _emit_head(document: Mapping[str, Any], wanted: str) -> None:
    runs = document["runs"]
    parts = [
        f"{document['env_id']}: {_count(runs['all'], 'run')}, {_count(document['configurations'], 'configuration')}"
    ]
    if document["threshold"] is None:
        parts.append("no threshold known")
    else:
        parts.append(f"{runs['solved']:,} solved (threshold {document['threshold']:g}), {runs['failed']:,} failed")
    if runs["unfinished"]:
        parts.append(f"{runs['unfinished']:,} left out: not finished")
    if runs["repeated"]:
        parts.append(f"{runs['repeated']:,} left out: the same settings and seed again")
    output.emit("; ".join(parts))
    if document["metric"] != wanted:
        output.message(f"no threshold is known, so runs are judged by their return, not by {wanted}")


def _unit(document: Mapping[str, Any]) -> str:
    is_updates = document["metric"] == "frames" and document["clock"] == "updates"
    return "UPDATES TO THRESHOLD" if is_updates else UNITS[document["metric"]]


def _emit_best(document: Mapping[str, Any]) -> None:
    metric, best = document["metric"], document["best"]
    output.emit("\nBest configurations\n")
    if not best:
        output.emit("none: no run has ended yet")
        return
    to_threshold = [] if metric == "return" else [f"{metric}_to_threshold"]
    columns = (
        "#",
        "SEEDS SOLVED",
        *(_unit(document) for _ in to_threshold),
        UNITS["return"],
        "ALGORITHM",
        "DIFFERS IN",
    )
    rows = [
        (
            str(place),
            f"{output.number(entry['solved'])} of {entry['seeds']}" + (" (one seed)" if entry["one_seed"] else ""),
            *(_spread(entry[name]) for name in (*to_threshold, "final_reward")),
            entry["algo_id"],
            _settings(entry),
        )
        for place, entry in enumerate(best, 1)
    ]
    output.emit_table(columns, rows, right=("#",))
    output.emit("")
    for place, entry in enumerate(best, 1):
        if entry["command"]:
            output.emit(f"{place}: {entry['command']}")
        else:
            output.emit(f"{place}: cannot be trained here; its settings: gsolve show {entry['runs'][0]}")
    if any(entry["one_seed"] for entry in best):
        output.emit("One seed proves nothing: train such a configuration over more before calling it best.")


def _settings(entry: Mapping[str, Any]) -> str:
    if entry["variant"] is None:
        return "no shipped variant"
    changed = ", ".join(f"{name} {_value(value)}" for name, value in entry["differs"].items())
    return changed or f"nothing: {entry['variant']}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and "start" in value:
        return f"{value['start']:g} → {value.get('end') or 0:g}"
    return "unset" if value is None else str(value)


def _spread(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    if math.isnan(low):
        return output.number(found["iqm"])
    return f"{output.number(found['iqm'])} [{output.number(low)}, {output.number(high)}]"


def _emit_separating(found: Mapping[str, Any]) -> None:
    output.emit(f"\nWhat separates runs: {found['good']} against {found['bad']}\n")
    if found["status"] == "not enough runs":
        output.emit(f"not enough runs: {found['why']}")
        return
    if not found["fields"]:
        output.emit("no setting does so beyond chance")
    for entry in found["fields"]:
        (share, other), (size, rest), (low, high) = entry["shares"], entry["configurations"], entry["interval"]
        output.emit(
            f"{entry['field']}: {entry['better']} {share:.0%} ({size} configurations), {entry['worse']} {other:.0%} "
            f"({rest}); {100 * entry['difference']:.0f} points apart [{100 * low:.0f}, {100 * high:.0f}], "
            f"p {entry['p_value']:.2g}"
        )
        if entry["always_with"]:
            output.emit(f"  always changed with {listed(entry['always_with'], NAMES)}: cannot be told apart")
        if entry["not_apart_from"]:
            others = listed(entry["not_apart_from"], NAMES)
            output.emit(f"  cannot be told apart from {others}: with that held equal, no difference is seen")
    output.emit(f"{found['why']}; splits are chosen to fit best, so differences are overestimated")
    named = {entry["field"] for entry in found["fields"]}
    rest = [names[0] for names in found["tested"] if names[0] not in named]
    for text, names in (
        ("no difference seen", rest),
        ("changed only with the algorithm", found["only_by_algorithm"]),
        ("changed too rarely to test", found["untested"]),
    ):
        if names:
            output.emit(f"{text}: {listed(names, NAMES)}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _emit_over_time(found: Mapping[str, Any], unit: str) -> None:
    periods, trend = found["periods"], found["trend"]
    if not periods:
        return
    output.emit(f"\n{unit.capitalize()} over time\n")
    output.emit_table(
        (found["period"].upper(), "RUNS", "SOLVED", "IQM", "BEST SO FAR"),
        [
            (
                entry["from"],
                str(entry["runs"]),
                str(entry["solved"]),
                output.number(entry["iqm"]),
                output.number(entry["best_so_far"]),
            )
            for entry in periods[-PERIODS:]
        ],
        right=("RUNS", "SOLVED", "IQM", "BEST SO FAR"),
    )
    drawn = sparkline([entry["iqm"] for entry in periods if entry["iqm"] is not None], 40)
    output.emit(f"\n{drawn}  {_trend(trend)}" if drawn else f"\n{_trend(trend)}")


def _trend(trend: Mapping[str, Any]) -> str:
    if trend["verdict"] == "too few configurations":
        return f"no trend yet: {_count(trend['configurations'], 'configuration')}, needs {trend['needed']}"
    low, high = trend["interval"]
    return (
        f"{trend['verdict']}: a configuration of the later half beats one of the earlier half with probability "
        f"{trend['probability_later_is_better']:.2f} [{low:.2f}, {high:.2f}], p {trend['p_value']:.2g}"
    )
