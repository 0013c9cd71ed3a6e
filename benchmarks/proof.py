"""How good are the experiments themselves?

    python benchmarks/proof.py solve      # gsolve solve --from-scratch on nine tasks, ten minutes each
    python benchmarks/proof.py null       # how often optimize finds something where there is nothing to find
    python benchmarks/proof.py parallel   # trainings an hour with two workers against one

Results go to results/proof.json. `gsolve optimize` on planted faults: faults/run.py optimize.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver import api
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.verify.experiments.race import BASELINE, Entry, Measure, Rules, confirm, race
from gymnasium_solver.verify.objective import Score, score
from gymnasium_solver.verify.trials import Training, Workers

RESULTS = Path(__file__).parent / "results" / "proof.json"
# Environment, fields that make the task, target where none is known of, tries.
TASKS: Sequence[tuple[str, Mapping[str, Any], float | None, int]] = (
    ("CartPole-v1", {}, None, 3),
    ("Acrobot-v1", {}, None, 3),
    ("MountainCar-v0", {}, None, 3),
    ("LunarLander-v3", {}, None, 3),
    ("Pendulum-v1", {}, -200.0, 1),
    ("FrozenLake-v1", {"env_kwargs": {"is_slippery": False}}, None, 1),
    ("FrozenLake-v1", {}, None, 1),
    ("CliffWalking-v1", {}, None, 1),
    ("Taxi-v3", {}, None, 1),
)
BUDGET = "10m"
REPETITIONS = 2000
CANDIDATES = 6


def solve(only: str) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for env_id, overrides, target, tries in TASKS:
            if only not in env_id:
                continue
            for attempt in range(tries):
                document = api.solve(
                    env_id,
                    overrides=dict(overrides),
                    target=target,
                    budget=BUDGET,
                    use_shipped=False,
                    seed=1 + 1000 * attempt,
                    runs_dir=directory,
                )
                found = document["solution"]
                rows.append(
                    {
                        "task": env_id + (f" {json.dumps(overrides)}" if overrides else ""),
                        "try": attempt + 1,
                        "solved": document["solved"],
                        "seconds": round(document["duration_s"], 1),
                        "trainings": document["trainings"],
                        "threshold": document["threshold"],
                        "mean": round(found["evaluation"]["mean"], 2) if found else None,
                        "by": next(a["label"] for a in document["attempts"] if a["number"] == found["attempt"])
                        if found
                        else None,
                    }
                )
                print(rows[-1], flush=True)
    return rows


def null(work: Path) -> dict[str, Any]:
    """The decisions of optimize on scores drawn from real trainings of one configuration: all candidates are equal."""
    fields = to_dict(load_config("CartPole-v1:ppo"))
    with Workers(runs_dir=work) as workers:
        results = workers.results([Training("null", {**fields, "seed": seed}) for seed in range(40)])
        scores = [score(trained, "steps") for trained in results]
    claims = sum(_claims(scores, repetition) for repetition in range(REPETITIONS))
    found = {"repetitions": REPETITIONS, "candidates": CANDIDATES, "trainings": len(scores), "claims": claims}
    return found | {"share": claims / REPETITIONS}


def _claims(scores: Sequence[Score], repetition: int) -> bool:
    rng = np.random.default_rng(repetition)

    def measure(entries: Sequence[Entry]) -> Mapping[Entry, Score | None]:
        return {entry: scores[rng.integers(len(scores))] for entry in entries}

    return _winner(measure, Rules()) is not None


def _winner(measure: Measure, rules: Rules) -> str | None:
    labels = [f"candidate {index}" for index in range(CANDIDATES)]
    ranking = race([BASELINE, *labels], measure, (1000, 1001, 1002)).ranking()
    if ranking[0] == BASELINE:
        return None
    for label in [label for label in ranking if label != BASELINE][: rules.attempts]:
        if confirm(label, measure, range(2000, 2000 + rules.looks[-1]), rules).verdict == "better":
            return label
    return None


def parallel(work: Path) -> dict[str, Any]:
    """The same eight trainings with one worker and with two, each with a core; workers are warm."""
    fields = to_dict(load_config("CartPole-v1:ppo", ["max_env_steps=150000", "stop_when_solved=false"]))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for count in (1, 2):
            with Workers(count, runs_dir=work) as workers:
                warm = [Training("warm", {**fields, "max_env_steps": 2048, "seed": seed}) for seed in range(count)]
                list(workers.results(warm))
                begun = time.perf_counter()
                list(workers.results([Training("timed", {**fields, "seed": seed}) for seed in range(8)]))
                seconds[count].append(time.perf_counter() - begun)
    one, two = (float(np.median(seconds[count])) for count in (1, 2))
    return {"trainings": 8, "seconds_one": one, "seconds_two": two, "throughput_ratio": one / two}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["solve", "null", "parallel"])
    parser.add_argument("--only", default="", help="of solve: tasks whose environment contains this; not recorded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        found: Any = (
            solve(options.only) if options.verb == "solve" else null(work) if options.verb == "null" else parallel(work)
        )
    print(json.dumps(found, indent=1))
    if not options.only:
        record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        record[options.verb] = {"date": time.strftime("%Y-%m-%d"), "found": found}
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
