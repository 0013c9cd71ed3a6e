"""Verbs that look at runs: `runs show status report checkpoints`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunOrGroupRef, RunRef, RunsDir
from gymnasium_solver.cli.progress import SHOWN
from gymnasium_solver.cli.sparkline import sparkline
from gymnasium_solver.metrics.clocks import CLOCKS, ENV_STEPS
from gymnasium_solver.plain import duration

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.reader import Run

WHENCE = {"started": "started_at", "group": "group", "resumed from": "parent"}


def runs(
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only this many, newest first.")] = None,
    group: Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only the seeds of a group.")] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """List the runs, newest first."""
    found = api.runs(group=group, runs_dir=runs_dir)[:limit]
    for run in found:
        if run.problem is not None:
            output.message(f"warning: {run.run_id}: {run.problem}")
    if json:
        output.emit_json([run.summary() for run in found])
    elif found:
        _emit_runs(found)
    elif group is not None:
        output.message(f"no runs of a group {group!r} here; gsolve runs lists all")
    else:
        output.message("no runs here yet; start one with: gsolve train CartPole-v1:ppo")


def _emit_runs(found: list[Run]) -> None:
    output.emit_table(
        ("RUN", "STATUS", "STEPS", "BEST", "LAST", "GOAL", "TIME"),
        (
            (
                run.run_id,
                summary["status"],
                _steps(summary),
                output.best(summary),
                output.number(summary.get("last_reward")),
                output.number(summary.get("threshold")),
                duration(summary.get("duration_s")),
            )
            for run, summary in ((run, run.summary()) for run in found)
        ),
        right=("STEPS", "BEST", "LAST", "GOAL", "TIME"),
    )


def _steps(summary: dict[str, Any]) -> str:
    """In one column with those of other runs: what is not counted in env steps says so."""
    clock = CLOCKS[summary["clock"]]
    return output.number(summary["progress"]) + ("" if clock is ENV_STEPS else f" {clock.unit}")


def show(run: RunOrGroupRef, runs_dir: RunsDir = None, json: Json = False) -> None:
    """Show a run: result, curves, checkpoints; or a group."""
    from gymnasium_solver.api.groups import Group, find

    found = find(run, runs_dir)
    if isinstance(found, Group):
        _show_group(found, json)
        return
    document = api.show(found)
    if json:
        output.emit_json(document)
        return
    output.emit_facts([*_facts(document["summary"]), *_whereabouts(document)])
    if rows := _curve_rows(found):
        output.emit("")
        output.emit_table(("METRIC", "LAST", "CURVE", "MIN", "MAX"), rows, right=("LAST", "MIN", "MAX"))
    for warning in document["warnings"][-5:]:
        output.message(f"warning: {warning}")


def _show_group(group: Group, json: bool) -> None:
    status = group.status()
    if json:
        output.emit_json(status)
        return
    if group_runs := group.runs():
        _emit_runs(group_runs)
        output.emit("")
    spread = f" ± {output.number(status['std'])}" if status["std"] is not None else ""
    waiting = status["waiting"]
    rows = [
        ("group", group.group_id),
        ("status", status["status"]),
        ("solved", f"{status['solved']} of {status['count']}"),
        ("reward", f"mean {output.number(status['mean'])}{spread}, IQM {output.number(status['iqm'])}"),
        *([("not begun", "seeds " + ", ".join(map(str, waiting)))] if waiting else []),
        *([("continue", f"gsolve train --resume {group.group_id}")] if _can_go_on(group) else []),
        ("report", f"gsolve report {group.group_id}"),
    ]
    output.emit_facts(rows)


def _can_go_on(group: Group) -> bool:
    return not group.is_experiment and group.standing(lambda: False) in ("interrupted", "crashed")


def _facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    steps, target = summary["progress"] or 0, summary["budget"]
    share = f" of {output.number(target)} ({steps / target:.0%})" if target else ""
    return [
        ("run", summary["run_id"]),
        ("trained", f"{summary['env_id']} with {summary['algo_id']}, seed {output.number(summary['seed'])}"),
        ("status", summary["status"]),
        *([("reason", summary["reason"])] if summary["reason"] else []),
        (CLOCKS[summary["clock"]].unit, f"{output.number(steps)}{share}"),
        ("best reward", output.best(summary)),
        ("last reward", output.number(summary["last_reward"])),
        *([("final reward", output.number(summary["test_reward"]))] if summary["test_reward"] is not None else []),
        ("threshold", output.number(summary["threshold"])),
        ("trained for", duration(summary["duration_s"])),
    ]


def _whereabouts(document: dict[str, Any]) -> list[tuple[str, str]]:
    summary = document["summary"]
    return [
        *((name, str(summary[key])) for name, key in WHENCE.items() if summary[key]),
        ("checkpoints", " ".join(document["checkpoints"]) or "-"),
        ("directory", str(document["path"])),
    ]


def _curve_rows(run: Run) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, label in SHOWN.items():
        values = run.metrics.series(name)[1].tolist() if name in run.metrics else []
        if values:
            last, least, most = (output.number(value) for value in (values[-1], min(values), max(values)))
            rows.append((label, last, sparkline(values, 30), least, most))
    return rows


def status(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run, or a group of seeds [all runs in progress].")
    ] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Say how far a run is, or all that are in progress."""
    from gymnasium_solver.api.groups import Group, find

    if run is not None:
        found = find(run, runs_dir)
        if isinstance(found, Group):
            _show_group(found, json)
        elif json:
            output.emit_json(api.status(found))
        else:
            output.emit_facts([*_facts(found.summary()), *_process(found)])
        return
    running = [found for found in api.runs(runs_dir=runs_dir) if found.status.get("status") == "running"]
    if json:
        output.emit_json([api.status(found) for found in running])
    elif running:
        _emit_runs(running)
    else:
        output.message("nothing is running; gsolve runs lists what was trained")


def _process(run: Run) -> list[tuple[str, str]]:
    record = run.status
    silence = time.time() - float(record.get("heartbeat", 0))
    return [
        ("process", f"{record.get('pid', '-')} on {record.get('host', '-')}"),
        ("last heard", f"{duration(silence)} ago" if "heartbeat" in record else "-"),
    ]


def report(
    run: RunOrGroupRef,
    print_: Annotated[bool, typer.Option("--print", "-p", help="Print the report itself, not only its path.")] = False,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Write the report and its plots again; print its path."""
    path = api.report(run, runs_dir=runs_dir)
    text = path.read_text(encoding="utf-8") if print_ or json else ""
    if json:
        output.emit_json({"path": path, "report": text})
    else:
        output.emit(text if print_ else str(path))


def checkpoints(run: RunRef, runs_dir: RunsDir = None, json: Json = False) -> None:
    """List the checkpoints of a run."""
    names = api.checkpoints(run, runs_dir=runs_dir)
    output.emit_json(names) if json else output.emit("\n".join(names) or "-")
