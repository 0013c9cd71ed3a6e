"""`gsolve regress`: convergence of a suite of configs against a stored baseline, with one verdict per config."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import to_dict
from gymnasium_solver.errors import EXIT_FAILURE, EXIT_OK, EXIT_TARGET_MISSED, ConfigError, SolverError
from gymnasium_solver.plain import number
from gymnasium_solver.verify.regression.files import (
    BASELINE,
    Entry,
    read_baseline,
    read_suite,
    require_writable,
    write_baseline,
)
from gymnasium_solver.verify.regression.verdict import (
    Change,
    Measured,
    Verdict,
    change,
    has_enough,
    is_identical,
    verdicts,
)
from gymnasium_solver.verify.trials import Trained, Training, Workers

SEEDS = 5
ORDER: tuple[Verdict, ...] = (
    *("regressed", "failed", "cannot tell", "improved", "unchanged", "identical", "no baseline"),
)  # what needs a person first


def regress(
    suite: str = "quick",
    *,
    baseline: Path | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    update: bool = False,
    runs_dir: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Train the suite, compare it with the baseline (or, with `update`, become it), and return the document."""
    entries = read_suite(suite)
    if update:
        if baseline is None:
            raise ConfigError("--update needs a file to write: add --baseline FILE")
        stored = read_baseline(baseline, suite) if baseline.exists() else {"configs": {}}
        require_writable(baseline)
    else:
        stored = read_baseline(baseline or BASELINE, suite)
    known = {name: Measured.from_dict(row) for name, row in stored["configs"].items()}
    chosen = entries if update else [entry for entry in entries if entry.name in known]
    if not chosen:
        where = baseline or "the shipped baseline"
        raise ConfigError(
            f"none of the configs of {suite} is in {where}; record them with: gsolve regress {suite} --update "
            f"--baseline {baseline or 'FILE'}"
        )
    plan = {entry.name: _seeds(entry, None if update else known[entry.name], seeds) for entry in chosen}
    group = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-regress"
    measured, errors = _train(chosen, plan, jobs, runs_dir, group, say)
    if update and baseline is not None:
        if errors:
            name, error = next(iter(errors.items()))
            raise SolverError(f"{name} could not be trained, so {baseline} is unchanged: {error}")
        write_baseline(baseline, stored, measured)
        return {
            "suite": suite,
            "updated": str(baseline),
            "configs": list(measured),
            "group": group,
            "exit_code": EXIT_OK,
        }
    rows = _compared(entries, known, measured, errors)
    document = {"suite": suite, "baseline": str(baseline or "shipped"), "group": group, "configs": rows}
    found = {row["verdict"] for row in rows}
    code = EXIT_TARGET_MISSED if "regressed" in found else EXIT_FAILURE if "failed" in found else EXIT_OK
    return document | {"exit_code": code}


def _seeds(entry: Entry, known: Measured | None, count: int | None) -> list[int]:
    """Those of the baseline, then further ones."""
    first = list(known.seeds) if known else []
    count = count or (min(SEEDS, len(first)) if first else SEEDS)
    following = max(first, default=entry.config.seed - 1) + 1
    return [*first, *range(following, following + count)][:count]


def _train(
    entries: Sequence[Entry],
    plan: Mapping[str, Sequence[int]],
    jobs: int | None,
    runs_dir: Path | None,
    group: str,
    say: Callable[[str], None],
) -> tuple[dict[str, Measured], dict[str, str]]:
    trainings = []
    for entry in entries:
        fields = to_dict(entry.config) | {"stop_when_solved": True}
        trainings += [Training(entry.name, fields | {"seed": seed}) for seed in plan[entry.name]]
    results: dict[str, list[Trained]] = {entry.name: [] for entry in entries}
    errors: dict[str, str] = {}
    with Workers(jobs, runs_dir=runs_dir, group=group) as workers:
        for count, trained in enumerate(workers.results(trainings), start=1):
            results[trained.label].append(trained)
            if trained.status == "failed" or trained.final_reward is None:
                errors[trained.label] = trained.error or "no episode finished"
            steps = f"solved in {number(trained.env_steps)} steps" if trained.solved else "not solved"
            what = errors[trained.label] if trained.status == "failed" else steps
            say(f"[{count}/{len(trainings)}] {trained.label} seed {trained.seed}: {what}, {trained.seconds:.1f} s")
    budgets = {entry.name: entry.config.budget for entry in entries}
    measured = {name: _measured(rows, budgets[name]) for name, rows in results.items() if name not in errors}
    return measured, errors


def _measured(results: Sequence[Trained], budget: int) -> Measured:
    ordered = sorted(results, key=lambda result: result.seed)
    return Measured(
        threshold=ordered[0].threshold,
        max_env_steps=budget,
        seeds=tuple(result.seed for result in ordered),
        solved=tuple(result.solved for result in ordered),
        env_steps=tuple(result.env_steps for result in ordered),
        reward=tuple(round(float(result.final_reward or 0.0), 4) for result in ordered),
        seconds=tuple(round(result.seconds, 1) for result in ordered),
    )


def _compared(
    entries: Sequence[Entry], known: Mapping[str, Measured], measured: Mapping[str, Measured], errors: Mapping[str, str]
) -> list[dict[str, Any]]:
    found: dict[str, Verdict] = {}
    changes: dict[str, Change] = {}
    notes: dict[str, str] = dict(errors)
    for entry in entries:
        name = entry.name
        if name not in known:
            found[name], notes[name] = "no baseline", "not in the baseline, so not trained; record it with --update"
        elif name in errors:
            found[name] = "failed"
        elif known[name].threshold != measured[name].threshold:
            found[name] = "cannot tell"
            notes[name] = (
                f"the threshold was {known[name].threshold} in the baseline and is {measured[name].threshold} now"
            )
        elif is_identical(known[name], measured[name]):
            found[name], notes[name] = "identical", "every seed gave exactly the same result as in the baseline"
        elif not has_enough(known[name], measured[name]):
            found[name], notes[name] = "cannot tell", "fewer than 3 seeds on a side; use --seeds 5"
        else:
            changes[name] = change(known[name], measured[name], entry.slot)
    found |= verdicts(changes)
    rows = [
        {
            "config": entry.name,
            "verdict": found[entry.name],
            "before": _sides(known.get(entry.name)),
            "now": _sides(measured.get(entry.name)),
            **_numbers(changes.get(entry.name)),
            "sentence": notes.get(entry.name) or sentence(changes[entry.name], found[entry.name]),
        }
        for entry in entries
    ]
    return sorted(rows, key=lambda row: ORDER.index(row["verdict"]))


def _sides(side: Measured | None) -> dict[str, Any] | None:
    if side is None:
        return None
    steps = [n if ok else None for n, ok in zip(side.env_steps, side.solved, strict=True)]
    return {"seeds": side.seeds, "solved": sum(side.solved), "steps": steps, "reward": side.reward,
            "steps_per_second": round(side.pace)}  # fmt: skip


def _numbers(one: Change | None) -> dict[str, Any]:
    if one is None:
        return {}
    return {"metric": one.metric, "change": one.share, "change_interval": (one.least, one.most),
            "p_worse": one.p_worse, "seeds_needed": one.seeds_needed}  # fmt: skip


def sentence(one: Change, verdict: Verdict) -> str:
    what = "steps to the threshold" if one.metric == "steps" else "loss of return"
    between = f"{what} {one.share:+.0%} ({one.least:+.0%} to {one.most:+.0%} fit the data)"
    if verdict == "unchanged":
        return f"{between}; a worsening of more than {one.tolerance:.0%} is ruled out"
    if verdict == "cannot tell":
        needed = (
            f"takes about {one.seeds_needed} seeds per side" if one.seeds_needed else "takes over 1000 seeds per side"
        )
        return f"{between}; ruling out {one.tolerance:+.0%} {needed}"
    return between
