"""Is learning the same on the compiled engine as on the host's? Both over the same seeds, told apart by `compare`.

    python benchmarks/engines.py                      # about half an hour on two cores; writes results/engines.json
    python benchmarks/engines.py --only CartPole-v1   # cases whose name contains this
    python benchmarks/engines.py --markdown           # print the last results as a table, train nothing

Shipped configurations (where there is none, that of a similar task), with shorter budgets and without stopping when
solved, so that returns are compared at equal steps.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "engines.json"
ENGINES = ("gymnasium", "compiled")
SEEDS = range(5)
DISCRETE_SAC: dict[str, Any] = {  # CartPole's
    "n_envs": 4,
    "train_freq": 8,
    "update_to_data": 0.5,
    "batch_size": 64,
    "learning_starts": 1000,
    "policy_lr": 1e-3,
    "tau": 0.01,
    "hidden_dims": [128, 128],
}
CASES: dict[str, dict[str, Any]] = {
    "CartPole-v1:ppo": {"max_env_steps": 50_000},
    "Acrobot-v1:ppo": {"max_env_steps": 120_000},
    "MountainCar-v0:ppo": {"max_env_steps": 300_000},
    "MountainCarContinuous-v0:ppo": {"max_env_steps": 100_000},
    "Pendulum-v1:ppo": {"max_env_steps": 120_000},
    "CartPole-v1:dqn": {"max_env_steps": 40_000},
    "Acrobot-v1:dqn": {"max_env_steps": 60_000},
    "MountainCar-v0:dqn": {"max_env_steps": 100_000},
    "CartPole-v1:sac": {"max_env_steps": 15_000},
    "Acrobot-v1:sac": {"max_env_steps": 15_000, **DISCRETE_SAC},
    "MountainCar-v0:sac": {"max_env_steps": 15_000, **DISCRETE_SAC},
    "MountainCarContinuous-v0:sac": {"max_env_steps": 10_000},
    "Pendulum-v1:sac": {"max_env_steps": 8_000},
}


def train(ref: str, fields: dict[str, Any], engine: str, seed: int, directory: str) -> str:
    import gymnasium_solver as gs
    from gymnasium_solver.config.load import load_config

    fields = fields | {"engine": engine, "seed": seed, "stop_when_solved": False}
    config = load_config(ref, fields)
    evaluations = max(1, config.max_env_steps // config.rollout // 8)
    return str(gs.train(ref, runs_dir=directory, **fields, eval_freq_epochs=evaluations).path)


def compare(ref: str, pool: ProcessPoolExecutor, directory: str) -> dict[str, Any]:
    import gymnasium_solver as gs

    tasks = [(engine, seed) for seed in SEEDS for engine in ENGINES]
    futures = [pool.submit(train, ref, CASES[ref], engine, seed, directory) for engine, seed in tasks]
    document = gs.compare(*(future.result() for future in futures), group_by="engine", runs_dir=directory)
    sides = {side["name"].partition("=")[2]: side["results"] for side in document["sides"]}
    return {
        "outcome": document["verdict"]["outcome"],
        "text": document["verdict"]["text"],
        "final": {engine: result["final_reward"] for engine, result in sides.items()},
        "steps_per_second": {engine: result["steps_per_second"] for engine, result in sides.items()},
        "tests": [
            {name: test[name] for name in ("measure", "verdict", "probability_of_improvement", "p_adjusted")}
            for test in document["tests"]
        ],
    }


def table(results: dict[str, Any]) -> str:
    lines = ["| case | verdict over 5 seeds | p (least, adjusted) | steps/s compiled : host |", "|---|---|---|---|"]
    for ref, result in results.items():
        least = min((test["p_adjusted"] for test in result["tests"] if test["p_adjusted"] is not None), default=None)
        pace = result["steps_per_second"]
        ratio = pace["compiled"] / pace["gymnasium"]
        lines.append(f"| {ref} | {result['outcome']} | {'' if least is None else f'{least:.2f}'} | {ratio:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="trainings at a time")
    parser.add_argument("--markdown", action="store_true", help="print the last results as a table")
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not options.markdown:
        os.environ["NPROC"] = "1"  # read by XLA: one thread per training
        with (
            ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool,
            tempfile.TemporaryDirectory(prefix="gsolve-engines-") as directory,
        ):
            for ref in CASES:
                if options.only in ref:
                    results[ref] = compare(ref, pool, str(Path(directory) / ref.replace(":", "-")))
                    print(ref, results[ref]["text"], flush=True)
                    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table({ref: results[ref] for ref in CASES if ref in results}))


if __name__ == "__main__":
    main()
