"""Scores: does the advice fix it, does it harm, is the cause named, are the healthy left in peace, do its numbers hold.

Everything is per case first (over its three seeds), then over cases with a bootstrap interval. A run of a biting case
is diagnosed, its first recommendation is trained on a fresh seed; three such seeds are compared with the broken ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from faults.admission import RESULTS, admitted, scores_of
from faults.cases import SEEDS, UNDO, Case, all_cases
from faults.diagnosis import INFORMATION, diagnose
from faults.experiments import POLICIES, Document, advice_tasks, advised, default_tasks, random_tasks
from faults.impact import covered
from faults.intervals import Estimate, calibration_error, over_cases, welch_interval
from faults.tables import render
from faults.training import Records, Task, read_records, train_all

RECOVERY = 0.8  # of the gap to the clean runs
EARLY = (0.25, 0.5)
Row = dict[str, Any]


def score(work: Path, split: str, jobs: int, only: str = "*") -> dict[str, Any]:
    """Prints the page; of all cases, writes it with its numbers to results/score-<split>.json and .md."""
    bite, cases, records = admitted(), all_cases(), read_records(work)
    chosen = [
        case
        for case in cases.values()
        if case.name in bite and case.split in (split, "both") and fnmatch(case.name, only)
    ]
    seen = {case.name: _documents(case, split, work, records) for case in chosen}
    pools = _pools(chosen, seen)
    plans = {
        case.name: {
            "advice": advice_tasks(case, seen[case.name]),
            **(_beside(case, pools(case)) if bite[case.name] else {}),
        }
        for case in chosen
    }
    tasks = [task for plan in plans.values() for made in plan.values() for task in made if task is not None]
    train_all(tasks, work, jobs)
    records = read_records(work)
    clean = {case.name: scores_of(cases[f"{case.reference.name}.clean"], split, records) for case in chosen}
    rows = [
        _judge(case, bite[case.name], split, seen[case.name], plans[case.name], records, clean[case.name])
        for case in chosen
    ]
    document = {
        "split": split,
        "summary": summarize(rows),
        "information": _by_information([case for case in chosen if bite[case.name]], split, work, records),
        "cases": rows,
    }
    if only == "*":  # a part of the cases is looked at, not recorded
        RESULTS.mkdir(exist_ok=True)
        plain = json.dumps(document, indent=1, default=_plain)
        (RESULTS / f"score-{split}.json").write_text(plain + "\n", encoding="utf-8")
        (RESULTS / f"score-{split}.md").write_text(render(document), encoding="utf-8")
    print(render(document))
    return document


def _beside(case: Case, pool: list[dict[str, Any]]) -> dict[str, list[Task | None]]:
    """A reset and a random change; where no change of the config can help, there is nothing to train."""
    if case.fix == UNDO:
        return {"defaults": [None] * len(SEEDS["fresh"]), "random": [None] * len(SEEDS["fresh"])}
    return {"defaults": default_tasks(case), "random": random_tasks(case, pool)}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _documents(
    case: Case, split: str, work: Path, records: Records, information: str | None = None, share: float = 1.0
) -> list[Document]:
    information = information or ("metrics" if case.hidden_config else "all")
    paths = [work / records[case.name, "", seed]["path"] for seed in SEEDS[split]]
    return [diagnose(path, information, share) for path in paths]


def _pools(cases: Sequence[Case], seen: dict[str, list[Document]]) -> Callable[[Case], list[dict[str, Any]]]:
    """Changes that were advised for other cases of the same algorithm."""

    def pool(case: Case) -> list[dict[str, Any]]:
        others = [c for c in cases if c.reference.algo_id == case.reference.algo_id and c.name != case.name]
        return [change for other in others for document in seen[other.name] if (change := advised(document))]

    return pool


def _judge(
    case: Case,
    bites: bool,
    split: str,
    documents: list[Document],
    plan: dict[str, list[Task | None]],
    records: Records,
    clean: list[float],
) -> Row:
    before = scores_of(case, split, records)
    row: Row = {"case": case.name, "cause": case.cause, "bites": bites, "hidden": case.hidden_config}
    row["by_config"] = case.fix != UNDO
    row |= {"clean": np.mean(clean), "before": np.mean(before)}
    for policy, tasks in plan.items():
        after = [
            records[task.key]["score"] if task is not None else old for task, old in zip(tasks, before, strict=True)
        ]
        row[policy] = {"after": np.mean(after), **verdict(before, after, clean)}
    row["found"] = [[b["cause"] for b in d.get("bottlenecks", [])][:3] for d in documents]
    row["advised"] = [advised(d) for d in documents]
    row["critical"] = [any(b["severity"] == "critical" for b in d.get("bottlenecks", [])) for d in documents]
    if bites:
        row["top1"] = [bool(found[:1]) and found[0] in case.causes for found in row["found"]]
        row["top3"] = [any(cause in case.causes for cause in found) for found in row["found"]]
        row["confidence"] = [d["bottlenecks"][0]["confidence"] if d.get("bottlenecks") else None for d in documents]
        row["covered"] = [
            covered(document, task, records) for document, task in zip(documents, plan["advice"], strict=True)
        ]
    return row


def verdict(before: list[float], after: list[float], clean: list[float]) -> dict[str, bool]:
    low, high = welch_interval(before, after)
    gap = float(np.mean(clean) - np.mean(before))
    recovered = float(np.mean(after) - np.mean(before)) >= RECOVERY * gap
    return {"fixed": bool(gap > 0 and recovered and low > 0), "harmed": high < 0}


def summarize(rows: list[Row]) -> dict[str, Any]:
    biting, quiet = [r for r in rows if r["bites"]], [r for r in rows if not r["bites"]]
    settings = [r for r in biting if r["by_config"]]
    known = [(c, t) for r in biting for c, t in zip(r["confidence"], r["top1"], strict=True) if c is not None]
    counted = [[c for c in r["covered"] if c is not None] for r in biting]

    def rate(chosen: list[Row], value: Callable[[Row], Any]) -> Estimate | None:
        return over_cases([value(row) for row in chosen])

    return {
        "biting": len(biting),
        "quiet": len(quiet),
        **{f"fix_{policy}": over_cases([r[policy]["fixed"] for r in biting]) for policy in POLICIES},
        **{f"fix_config_{policy}": over_cases([r[policy]["fixed"] for r in settings]) for policy in POLICIES},
        "harm": rate(rows, lambda r: r["advice"]["harmed"]),
        "harm_defaults": rate(biting, lambda r: r["defaults"]["harmed"]),
        "harm_random": rate(biting, lambda r: r["random"]["harmed"]),
        "top1": rate(biting, lambda r: np.mean(r["top1"])),
        "top3": rate(biting, lambda r: np.mean(r["top3"])),
        "top1_hidden": rate([r for r in biting if r["hidden"]], lambda r: np.mean(r["top1"])),
        "fix_hidden": rate([r for r in biting if r["hidden"]], lambda r: r["advice"]["fixed"]),
        "critical_on_quiet": rate(quiet, lambda r: np.mean(r["critical"])),
        "calibration_error": calibration_error([c for c, _ in known], [t for _, t in known]),
        "impact_covered": over_cases([float(np.mean(c)) for c in counted if c]),
    }


def _by_information(cases: list[Case], split: str, work: Path, records: Records) -> dict[str, dict[str, Any]]:
    """Cause class from less: metrics only, + config, + checkpoints; without knowing the environment; and early on."""
    views: dict[str, tuple[str, float]] = {name: (name, 1.0) for name in INFORMATION}
    views |= {f"first {share:.0%}": ("config", share) for share in EARLY}
    table = {}
    for name, (information, share) in views.items():
        first, three = [], []
        for case in cases:
            documents = _documents(case, split, work, records, information, share)
            found = [[b["cause"] for b in d.get("bottlenecks", [])][:3] for d in documents]
            first.append(float(np.mean([bool(f) and f[0] in case.causes for f in found])))
            three.append(float(np.mean([any(c in case.causes for c in f) for f in found])))
        table[name] = {"top1": over_cases(first), "top3": over_cases(three)}
    return table
