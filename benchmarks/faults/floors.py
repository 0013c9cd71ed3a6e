"""What a policy that has learnt nothing gets: the floors of references.py."""

from __future__ import annotations

import numpy as np

from faults.references import REFERENCES


def measure(episodes: int = 200) -> None:
    """Prints the mean return of uniformly random actions; a still policy may do better, see references.py."""
    from gymnasium_solver.envs import make_engine
    from gymnasium_solver.envs.actions import random_action
    from gymnasium_solver.train.judge import run_episodes

    for reference in REFERENCES.values():
        engine = make_engine(reference.config({}, 0), 20, evaluation=True)
        rng = np.random.default_rng(0)
        spec = engine.spec.action
        act = lambda obs, mask, started, spec=spec, rng=rng: np.stack([random_action(spec, None, rng) for _ in obs])  # noqa: E731
        mean = run_episodes(engine, act, episodes, 0).mean
        engine.close()
        print(f"{reference.name}: {mean:.3g} (floor {reference.floor:g}, threshold {reference.threshold:g})")
