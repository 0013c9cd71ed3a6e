"""A run as one page: report.md with its pictures, and several seeds as one table."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gymnasium_solver.errors import writing
from gymnasium_solver.metrics.clocks import CLOCKS, Clock
from gymnasium_solver.plain import duration
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.plots import draw_plots
from gymnasium_solver.runs.reader import Run, checkpoint_ref
from gymnasium_solver.statistics import interquartile_mean

WARNINGS_SHOWN = 20
CAPTIONS = {
    "reward.svg": "Return of training episodes and of evaluations over {axis}.",
    "health.svg": "The update: KL divergence, clip fraction, entropy, explained variance (green: range to start from).",
    "values.svg": "Action values, their errors, and what drives exploration.",
    "losses.svg": "Losses, gradient norms by part, learning rate.",
    "pace.svg": "Episode length and environment steps per second.",
}


def write_report(path: Path) -> Path:
    """report.md and plots/ from what is on disk, for a run in any state."""
    run = Run(Path(path))
    summary = run.summary()
    with writing(run.report_path, f"free some space or make it writable, then: gsolve report {run.run_id}"):
        pictures = draw_plots(run.path, run.metrics, summary["threshold"])
        sections = [
            f"# {_outcome(summary)}",
            _table(summary),
            *(_picture(name, run.clock) for name in pictures),
            _changes(run),
            _warnings(run),
            _commands(run, summary),
            _environment(run),
            f"<details><summary>Configuration</summary>\n\n```yaml\n{_yaml(run.config)}```\n\n</details>",
        ]
        layout.replace_file(run.report_path, ["\n\n".join(x for x in sections if x).encode(), b"\n"])
    return run.report_path


def write_group_report(runs: Sequence[Run]) -> str:
    """Several seeds together: a row a seed, then what they say as a group."""
    if not runs:
        return "No runs.\n"
    rows, clock = [(run, run.summary()) for run in runs], runs[0].clock
    threshold = next((s["threshold"] for _, s in rows if s["threshold"] is not None), None)
    lines = [
        f"# {rows[0][1]['env_id']} · {rows[0][1]['algo_id']} · {len(rows)} {'run' if len(rows) == 1 else 'runs'}",
        "",
        f"| seed | run | status | final reward | best reward | {clock.words} | {clock.unit} to threshold | time "
        "| solved |",
        "|---:|---|---|---:|---:|---:|---:|---:|---|",
    ]
    finals, reached = [], []
    for run, summary in rows:
        final = final_reward(summary)
        steps = steps_to_threshold(run, summary["threshold"])
        finals.append(np.nan if final is None else final)
        reached.append(np.inf if steps is None else steps)
        lines.append(
            f"| {summary['seed']} | {run.run_id} | {summary['status']} | {_number(final)} | "
            f"{_number(summary['best_reward'])} | {_count(summary['progress'])} | {_count(steps)} | "
            f"{duration(summary['duration_s'])} | {'yes' if summary['solved'] else 'no'} |"
        )
    known = np.array([x for x in finals if not np.isnan(x)])
    lines.append("")
    if known.size:
        spread = known.std(ddof=1) if known.size > 1 else None
        statistics = (known.mean(), spread, known.min(), known.max(), interquartile_mean(known))
        lines += [
            "| final reward | mean | std | min | max | IQM |",
            "|---|---:|---:|---:|---:|---:|",
            f"| {known.size} of {len(rows)} runs | " + " | ".join(map(_number, statistics)) + " |",
            "",
        ]
    solved = sum(summary["solved"] for _, summary in rows)
    if threshold is None:
        lines.append("No threshold is known for this environment.")
    else:
        median = float(np.median(reached))
        middle = f"{_count(median)} {clock.words}" if np.isfinite(median) else "not reached by half of the runs"
        lines.append(f"Solved (threshold {threshold:g}): {solved} of {len(rows)}. Median to threshold: {middle}.")
    return "\n".join(lines) + "\n"


def changes_on_resume(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Fields that a resumed run goes on with otherwise, for its log: config.json knows only the newest values."""
    changed = (name for name in now if name in before and now[name] != before[name])
    return [f"{name}={json.dumps(now[name])} (was {json.dumps(before[name])})" for name in changed]


def final_reward(summary: dict[str, Any]) -> float | None:
    """Of the final evaluation if there was one, else the last one known."""
    return summary["last_reward"] if summary["test_reward"] is None else summary["test_reward"]


def steps_to_threshold(run: Run, threshold: float | None) -> int | None:
    """On the run's clock, at the first evaluation (or, without any, training mean) at the threshold."""
    if threshold is None:
        return None
    evaluated = run.metrics.series("val/roll/ep_rew_mean")
    steps, rewards = evaluated if evaluated[0].size else run.metrics.series("train/roll/ep_rew_mean")
    at = np.flatnonzero(rewards >= threshold)
    return int(steps[at[0]]) if at.size else None


def _outcome(summary: dict[str, Any]) -> str:
    what = f"{summary['env_id']} · {summary['algo_id']} · seed {summary['seed']}"
    best, threshold = summary["best_reward"], summary["threshold"]
    if best is None:
        reward = "no episode finished yet"
    elif threshold is None:
        reward = f"best reward {best:,.2f} (no threshold known)"
    else:
        reward = f"best reward {best:,.2f} against a threshold of {threshold:g}"
    return f"{what}: {summary['status']}, {reward}"


def _table(summary: dict[str, Any]) -> str:
    trained = _count(summary["progress"])
    if summary["budget"]:
        trained += f" of {_count(summary['budget'])}"
    rows = {
        "run": f"`{summary['run_id']}`",
        "status": summary["status"],
        "reason": summary["reason"],
        CLOCKS[summary["clock"]].axis: trained,
        "epochs": _count(summary["epochs"]),
        "episodes": _count(summary["episodes"]),
        "best reward": _number(summary["best_reward"]),
        "last reward": _number(summary["last_reward"]),
        "final evaluation": None if summary["test_reward"] is None else _number(summary["test_reward"]),
        "threshold": _number(summary["threshold"]),
        "time": duration(summary["duration_s"]),
        "started": summary["started_at"],
        "initialised from": summary["parent"],
        "group": summary["group"],
    }
    shown = [f"| {key} | {_cell(value)} |" for key, value in rows.items() if value is not None]
    return "\n".join(["| | |", "|---|---|", *shown])


def _picture(name: str, clock: Clock) -> str:
    caption = CAPTIONS[name].format(axis=clock.axis)
    return f"![{caption}]({layout.PLOTS}/{name})\n*{caption}*"


def _warnings(run: Run) -> str:
    """Warnings and errors of run.log, equal ones once; of a stack trace the error itself, which has its own entry."""
    entry = re.compile(r"\S+ (WARNING|ERROR|CRITICAL) (?!Traceback \()(.*)")
    entries = [match for line in run.log_lines() if (match := entry.match(line))]
    if not entries:
        return ""
    counted = Counter((match[1], match[2]) for match in entries)
    lines = [
        f"- {level}: {message}" + (f" (×{times})" if times > 1 else "")
        for (level, message), times in list(counted.items())[-WARNINGS_SHOWN:]
    ]
    left_out = len(counted) - WARNINGS_SHOWN
    more = [f"- and {left_out} earlier ones in {layout.LOG}"] if left_out > 0 else []
    return "\n".join(["## Warnings", "", *lines, *more])


_CHANGE = re.compile(r"\S+ INFO (from (\d+) (env steps|updates) on: .+ \(was .+\))$")  # as train/loop.py logs it


def _changes(run: Run) -> str:
    """What `--resume --set` changed on the way."""
    lines = [f"- {match[1]}" for line in run.log_lines() if (match := _CHANGE.match(line))]
    return "\n".join(["## Changed on the way", "", *lines]) if lines else ""


def _commands(run: Run, summary: dict[str, Any]) -> str:
    commands = []
    if command := run.environment.get("command"):
        program, *arguments = map(str, command)
        # What was run as a module, or by the path of an installed script, is run by its name.
        if Path(program).name in ("__main__.py", "gsolve"):
            program = "gsolve"
        changed_at = [int(match[2]) for line in run.log_lines() if (match := _CHANGE.match(line))]
        extent = f" the first {min(changed_at)} {run.clock.words}, then the changes above" if changed_at else ""
        commands.append(f"{shlex.join([program, *arguments])}  # reproduce{extent}")
    names = run.checkpoints()
    if names:
        best = checkpoint_ref(run.run_id, "best" if "best" in names else names[0])
        if run.status["status"] != "completed":
            commands.append(f"gsolve train --resume {run.run_id}  # continue from the last checkpoint")
        commands += [
            f"gsolve evaluate {best}  # score it on fresh episodes",
            f"gsolve play {best}  # watch it",
        ]
    elif summary["status"] != "running":
        commands.append(f"gsolve logs {run.run_id}  # no checkpoint was written; see what happened")
    if not commands:
        return ""
    return "\n".join(["## Commands", "", "```sh", *commands, "```"])


def _environment(run: Run) -> str:
    record = run.environment
    if not record:
        return ""
    git = record.get("git") or {}
    state = "uncommitted changes" if git.get("dirty") else "clean"
    commit = f", git {git['commit'][:12]} ({state})" if git.get("commit") else ""
    packages = record.get("packages") or {}
    versions = ", ".join(
        f"{name} {packages[name]}" for name in ("gymnasium-solver", "jax", "gymnasium") if name in packages
    )
    return (
        f"Made with {versions}, Python {record.get('python')} on {record.get('platform')} "
        f"({record.get('cpu_count')} CPUs, {record.get('host')}){commit}."
    )


def _yaml(config: dict[str, Any]) -> str:
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True) if config else "# config.json is missing\n"


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


def _count(value: float | None) -> str:
    return "–" if value is None else f"{int(value):,}"
