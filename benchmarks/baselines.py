"""What diagnosis compares a run with: the return of random actions, and the steps that shipped configurations need.

    python benchmarks/baselines.py          # a minute; writes gymnasium_solver/diagnose/baselines.json
    python benchmarks/baselines.py ENV …    # these alone; the others stay as they are

Random play is measured in the environment without frame skip and wrappers, and once more with those of each shipped
variant that has any (`rewards_with`), because they change what chance brings. Steps are the medians of
benchmarks/results/shipped.json over the seeds that solved, where at least half of them did.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import load_config
from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.readings import AS_IT_IS
from gymnasium_solver.envs import make_engine

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "benchmarks" / "results" / "shipped.json"
TARGET = ROOT / "gymnasium_solver" / "diagnose" / "baselines.json"
ENVS = 8
EPISODES = 50  # of each environment: the first hundred to end would mostly be short ones
MOST_STEPS = 400_000


def random_play(config: Config) -> dict[str, Any]:
    """Mean return of uniformly random actions and the rewards they meet, in the environment as it is configured."""
    import numpy as np

    engine = make_engine(config, ENVS, on_host=True)
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


def measured(env_id: str, refs: list[str]) -> dict[str, Any]:
    """What random actions earn in the environment as it is, and as each of its variants changes it."""
    played: list[dict[str, Any]] = []
    for config in (load_config(refs[0], AS_IT_IS), *map(load_config, refs)):
        settings = {name: getattr(config, name) for name in AS_IT_IS}
        if not any(settings.items() <= other.items() for other in played):
            played.append(settings | random_play(config))
            print(env_id, played[-1], flush=True)
    plain, *others = played
    rewards = {name: value for name, value in plain.items() if name not in AS_IT_IS}
    return rewards | ({"rewards_with": others} if others else {})


def main(wanted: list[str]) -> None:
    rows = json.loads(SHIPPED.read_text(encoding="utf-8"))["rows"]
    environments = json.loads(TARGET.read_text(encoding="utf-8"))["environments"] if wanted else {}
    variants: dict[str, list[str]] = defaultdict(list)
    for ref in rows:
        variants[ref.rsplit(":", 1)[0]].append(ref)
    for env_id, refs in variants.items():
        if wanted and env_id not in wanted:
            continue
        steps = {}
        for ref in refs:
            row, algo_id = rows[ref], load_config(ref).algo_id
            reached = [
                n for n, reward in zip(row["env_steps"], row["reward"], strict=True) if reward >= row["threshold"]
            ]
            if 2 * len(reached) >= row["seeds"] and ref.endswith(f":{algo_id}"):
                steps[algo_id] = int(statistics.median(reached))
        threshold = rows[refs[0]]["threshold"]
        environments[env_id] = {"threshold": threshold, **measured(env_id, refs), "steps_to_threshold": steps}
    lines = ",\n".join(f"  {json.dumps(env)}: {json.dumps(entry)}" for env, entry in sorted(environments.items()))
    source = "python benchmarks/baselines.py"
    TARGET.write_text(f'{{\n "source": "{source}",\n "environments": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
