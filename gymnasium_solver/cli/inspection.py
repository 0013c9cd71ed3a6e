"""Verbs that look at runs: `runs show status report checkpoints`, and those in logs.py and stop.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver.cli import output
from gymnasium_solver.cli.logs import entries, logs
from gymnasium_solver.cli.options import Json, RunRef, RunsDir
from gymnasium_solver.cli.stop import stop

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run


def register(app: typer.Typer) -> None:
    for verb in (runs, show, logs, status, stop, report, checkpoints):
        app.command()(verb)


def runs(
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only this many, newest first.")] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """List the runs, newest first."""
    from gymnasium_solver.runs.reader import list_runs

    found = list_runs(runs_dir)[:limit]
    if json:
        output.emit_json([run.summary() for run in found])
    elif found:
        _emit_runs(found)
    else:
        output.message("no runs here yet; start one with: gsolve train CartPole-v1:ppo")


def _emit_runs(found: list[Run]) -> None:
    output.emit_table(
        ("RUN", "STATUS", "STEPS", "BEST", "LAST", "GOAL", "TIME"),
        (
            (
                run.run_id,
                output.verdict(summary),
                output.number(summary.get("env_steps")),
                output.number(summary.get("best_reward")),
                output.number(summary.get("last_reward")),
                output.number(summary.get("threshold")),
                output.duration(summary.get("duration_s")),
            )
            for run, summary in ((run, run.summary()) for run in found)
        ),
        right=("STEPS", "BEST", "LAST", "GOAL", "TIME"),
    )


def show(run: RunRef, runs_dir: RunsDir = None, json: Json = False) -> None:
    """Show one run: result, curves, checkpoints, warnings."""
    from gymnasium_solver.runs.reader import find_run

    found = find_run(run, runs_dir)
    summary = found.summary()
    if json:
        last = {name: found.metrics.last(name) for name in found.metrics.names}
        output.emit_json(
            {
                "summary": summary,
                "path": found.path,
                "report": found.report_path,
                "config": found.config,
                "metrics": last,
                "checkpoints": found.checkpoints(),
                "warnings": _warnings(found),
            }
        )
        return
    output.emit_table(("FIELD", "VALUE"), _summary_rows(found, summary), whole="VALUE")
    if rows := _curve_rows(found):
        output.emit("")
        output.emit_table(("METRIC", "LAST", "MIN", "MAX", "CURVE"), rows, right=("LAST", "MIN", "MAX"))
    for warning in _warnings(found)[-5:]:
        output.message(f"warning: {warning}")


def _summary_rows(run: Run, summary: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        *((name, output.number(value)) for name, value in summary.items() if value is not None),
        ("checkpoints", " ".join(run.checkpoints()) or "-"),
    ]


def _curve_rows(run: Run) -> list[tuple[str, ...]]:
    from gymnasium_solver.cli.progress import SHOWN
    from gymnasium_solver.cli.sparkline import sparkline

    rows = []
    for name in SHOWN:
        values = run.metrics.series(name)[1].tolist() if name in run.metrics else []
        if values:
            ends = (output.number(value) for value in (values[-1], min(values), max(values)))
            rows.append((name, *ends, sparkline(values, 40)))
    return rows


def _warnings(run: Run) -> list[str]:
    return [entry["message"] for entry in entries(run.log_lines()) if entry["level"] == "WARNING"]


def status(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run [all that are running].")] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Say how far a run is, or all that are in progress."""
    from gymnasium_solver.runs.reader import find_run, list_runs

    if run is not None:
        found = find_run(run, runs_dir)
        if json:
            output.emit_json({"run_id": found.run_id, **found.status, **found.summary()})
        else:
            output.emit_table(("FIELD", "VALUE"), _status_rows(found), whole="VALUE")
        return
    running = [found for found in list_runs(runs_dir) if found.status.get("status") == "running"]
    if json:
        output.emit_json([{"run_id": found.run_id, **found.status, **found.summary()} for found in running])
    elif running:
        _emit_runs(running)
    else:
        output.message("nothing is running; gsolve runs lists what was trained")


def _status_rows(run: Run) -> list[tuple[str, str]]:
    summary, record = run.summary(), run.status
    steps, target = summary.get("env_steps") or 0, summary.get("max_env_steps")
    share = f" of {output.number(target)} ({steps / target:.0%})" if target else ""
    silence = time.time() - float(record.get("heartbeat", 0))
    return [
        ("run", run.run_id),
        ("status", output.verdict(summary)),
        ("steps", f"{output.number(steps)}{share}"),
        ("best reward", output.number(summary.get("best_reward"))),
        ("last reward", output.number(summary.get("last_reward"))),
        ("threshold", output.number(summary.get("threshold"))),
        ("trained for", output.duration(summary.get("duration_s"))),
        ("process", f"{record.get('pid', '-')} on {record.get('host', '-')}"),
        ("last heard", f"{output.duration(silence)} ago" if "heartbeat" in record else "-"),
        *([("error", str(summary["error"]))] if summary.get("error") else []),
    ]


def report(
    run: RunRef,
    print_: Annotated[bool, typer.Option("--print", "-p", help="Print the report itself, not only its path.")] = False,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Write the report and its plots again; print its path."""
    from gymnasium_solver.runs.reader import find_run
    from gymnasium_solver.runs.report import write_report

    path = write_report(find_run(run, runs_dir).path)
    text = path.read_text(encoding="utf-8") if print_ or json else ""
    if json:
        output.emit_json({"path": path, "report": text})
    else:
        output.emit(text if print_ else str(path))


def checkpoints(run: RunRef, runs_dir: RunsDir = None, json: Json = False) -> None:
    """List the checkpoints of a run."""
    from gymnasium_solver.runs.reader import find_run

    names = find_run(run, runs_dir).checkpoints()
    output.emit_json(names) if json else output.emit("\n".join(names) or "-")
