"""What diagnosis compares a run with: the return of random actions, and the steps that shipped configurations need.

    python benchmarks/baselines.py    # a minute; writes gymnasium_solver/diagnose/baselines.json

Steps are the medians of benchmarks/results/shipped.json over the seeds that solved, where at least half of them did.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import make_engine

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "benchmarks" / "results" / "shipped.json"
TARGET = ROOT / "gymnasium_solver" / "diagnose" / "baselines.json"
ENVS = 8
EPISODES = 50  # of each environment: the first hundred to end would mostly be short ones
MOST_STEPS = 400_000


def random_play(ref: str) -> dict[str, Any]:
    """Mean return of uniformly random actions and the rewards they meet, in the environment as it is configured."""
    import numpy as np

    engine = make_engine(load_config(ref), ENVS)
    rng, action = np.random.default_rng(0), engine.spec.action
    engine.reset(0)
    returns: list[list[float]] = [[] for _ in range(ENVS)]
    running, resetting = np.zeros(ENVS), np.zeros(ENVS, bool)
    low, high = np.inf, -np.inf
    for _ in range(MOST_STEPS // ENVS):
        if action.kind == "box":
            bounds = np.maximum(action.low, -1.0), np.minimum(action.high, 1.0)
            chosen: Any = rng.uniform(*bounds, (ENVS, action.dim)).astype(np.float32)
        else:
            chosen = np.stack([rng.integers(0, size, ENVS) for size in action.sizes], axis=-1).astype(np.int32)
            chosen = chosen[:, 0] if action.kind == "discrete" else chosen
        step = engine.step(chosen)
        running += step.reward
        met = step.reward[~resetting]
        low, high = min(low, float(met.min(initial=low))), max(high, float(met.max(initial=high)))
        resetting = step.terminated | step.truncated
        for index in np.flatnonzero(step.terminated | step.truncated):
            returns[index].append(float(running[index]))
            running[index] = 0.0
        if all(len(ended) >= EPISODES for ended in returns):
            break
    engine.close()
    mean = statistics.mean(value for ended in returns for value in ended[:EPISODES])
    return {"random_return": round(mean, 3), "reward_range": [round(low, 3), round(high, 3)]}


def main() -> None:
    rows = json.loads(SHIPPED.read_text(encoding="utf-8"))["rows"]
    environments: dict[str, dict[str, Any]] = {}
    steps: dict[str, dict[str, int]] = defaultdict(dict)
    for ref, row in rows.items():
        env_id, variant = ref.rsplit(":", 1)
        config = load_config(ref)
        solved = [
            count for count, reward in zip(row["env_steps"], row["reward"], strict=True) if reward >= row["threshold"]
        ]
        if 2 * len(solved) >= row["seeds"] and variant == config.algo_id:
            steps[env_id][config.algo_id] = int(statistics.median(solved))
        if env_id not in environments:
            environments[env_id] = {"threshold": row["threshold"], **random_play(ref)}
            print(env_id, environments[env_id], flush=True)
    for env_id, entry in environments.items():
        entry["steps_to_threshold"] = steps[env_id]
    lines = ",\n".join(f"  {json.dumps(env)}: {json.dumps(entry)}" for env, entry in sorted(environments.items()))
    source = "python benchmarks/baselines.py"
    TARGET.write_text(f'{{\n "source": "{source}",\n "environments": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
