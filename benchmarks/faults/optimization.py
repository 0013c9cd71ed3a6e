"""Does `gsolve optimize` fix what is broken, and leave alone what is not?

Every biting fault that a setting can fix is optimised from its configuration alone, on seeds of its own. It is
repaired if the winner's fresh seeds make up most of the loss, as with advice (score.py). Faults planted into the
environment or the code from outside cannot follow into the worker processes and are left out. Of the healthy
references, the winner may be anything but worse.
"""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from faults.admission import RESULTS, admitted, scores_of
from faults.cases import UNDO, Case, all_cases
from faults.intervals import over_cases, welch_interval
from faults.score import verdict
from faults.training import read_records
from gymnasium_solver.config.load import to_dict
from gymnasium_solver.verify.experiments.optimize import optimize
from gymnasium_solver.verify.experiments.options import Options

SEED = 300
TRAININGS = 40  # of one optimisation; a budget of time would depend on what else the machine does
Row = dict[str, Any]


def measure(work: Path, split: str | None, jobs: int, only: str = "*") -> None:
    """One line a case as it is done, kept in --work; the table goes to results/optimize.json."""
    bite, cases = admitted(), all_cases()
    chosen = [case for case in cases.values() if _is_counted(case, bite, split) and fnmatch(case.name, only)]
    kept = work / "optimize.jsonl"
    done = {row["case"]: row for row in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    for case in chosen:
        if case.name not in done:
            done[case.name] = _optimized(case, bite.get(case.name, False), work, jobs)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[case.name]) + "\n")
        print(_line(done[case.name]), flush=True)
    rows = [done[case.name] for case in chosen]
    broken, healthy = [row for row in rows if row["bites"]], [row for row in rows if not row["bites"]]
    summary = {
        "repaired": over_cases([row["repaired"] for row in broken]),
        "repaired_test": over_cases([row["repaired"] for row in broken if row["split"] == "test"]),
        "healthy": len(healthy),
        "healthy_worse": sum(row["worse"] for row in healthy),
        "seconds_median": float(np.median([row["seconds"] for row in rows])) if rows else None,
    }
    print(json.dumps(summary, indent=1))
    if only == "*":
        found = {"split": split or "both", "budget_trainings": TRAININGS, "summary": summary, "cases": rows}
        text = json.dumps(found, indent=1)
        (RESULTS / "optimize.json").write_text(text + "\n", encoding="utf-8")


def _is_counted(case: Case, bite: dict[str, bool], split: str | None) -> bool:
    if split is not None and case.split not in (split, "both"):
        return False
    if case.name.endswith(".clean"):
        return True
    return bite.get(case.name, False) and case.fix != UNDO and case.wrapper is None and case.patch is None


def _optimized(case: Case, bites: bool, work: Path, jobs: int) -> Row:
    split = "calibration" if case.split == "both" else case.split
    records, cases = read_records(work), all_cases()
    before = scores_of(case, split, records)
    clean = scores_of(cases[f"{case.reference.name}.clean"], split, records)
    options = Options(max_runs=TRAININGS, jobs=jobs, runs_dir=work / "optimize")
    document = optimize(to_dict(case.config(SEED)), case.name, options)
    row: Row = {"case": case.name, "split": case.split, "bites": bites, "seconds": document["duration_s"]}
    row |= {"winner": document["winner"], "set": document["set"], "verdict": document["verdict"]}
    row["trainings"] = document["trainings"]
    test = next((test for test in document["tests"] if test["candidate"] == document["winner"]), None)
    after = [case.score(reward) for reward in test["candidate_returns"]] if test else before
    row |= {"before": np.mean(before), "after": np.mean(after), "clean": np.mean(clean)}
    row["repaired"] = bites and test is not None and verdict(before, after, clean)["fixed"]
    row["worse"] = welch_interval(before, after)[1] < 0
    return row


def _line(row: Row) -> str:
    word = (
        ("repaired" if row["repaired"] else "NOT repaired") if row["bites"] else "WORSE" if row["worse"] else "healthy"
    )
    return f"{row['case']}: {word}, {row['before']:.2f} to {row['after']:.2f}, {row['seconds']:.0f} s, {row['verdict']}"
