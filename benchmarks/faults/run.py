"""The fault benchmark.

    python benchmarks/faults/run.py all              # everything below, in order; what `make faults` calls
    python benchmarks/faults/run.py train            # every case on the seeds of its split
    python benchmarks/faults/run.py admit            # which faults bite: results/admission.json
    python benchmarks/faults/run.py calibrate        # what the calibration split teaches: diagnose/calibration.json
    python benchmarks/faults/run.py score            # diagnose, re-train with the advice: results/score-SPLIT.md
    python benchmarks/faults/run.py optimize         # does gsolve optimize repair them: results/optimize.json
    python benchmarks/faults/run.py floors           # what a policy that has learnt nothing gets in each environment

Runs go to --work and are kept: a second call trains only what is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.admission import admit
from faults.cases import SEEDS, Case, all_cases
from faults.training import Task, train_all


def tasks_of(case: Case, split: str, seeds: tuple[int, ...] | None) -> list[Task]:
    if case.split not in (split, "both"):
        return []
    return [Task(case.name, seed) for seed in seeds or SEEDS[split]]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["all", "train", "admit", "calibrate", "score", "optimize", "floors"])
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()) / "faults", help="directory of the runs"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="worker processes")
    parser.add_argument("--only", default="*", help="cases whose name matches this pattern")
    parser.add_argument("--split", choices=["calibration", "test"], help="one split only")
    parser.add_argument("--seeds", type=_numbers, help="in place of the split's own, e.g. 0,1")
    options = parser.parse_args()
    splits = [options.split] if options.split else ["calibration", "test"]
    if options.verb == "floors":
        from faults.floors import measure

        measure()
    if options.verb in ("all", "train"):
        cases = all_cases().values()
        tasks = [task for split in splits for case in cases for task in tasks_of(case, split, options.seeds)]
        tasks.sort(key=lambda task: task.seed)  # all cases once, then all of them again: usable before it is done
        train_all(tasks, options.work, options.jobs, options.only)
    if options.verb in ("all", "admit"):
        admit(options.work)
    if options.verb in ("all", "calibrate"):
        from faults.calibrate import calibrate

        calibrate(options.work, options.jobs)
    if options.verb in ("all", "score"):
        from faults.score import score

        score(options.work, options.split or "test", options.jobs, options.only)
    if options.verb == "optimize":
        from faults.optimization import measure as optimize

        optimize(options.work, options.split, options.jobs, options.only)


if __name__ == "__main__":
    main()
