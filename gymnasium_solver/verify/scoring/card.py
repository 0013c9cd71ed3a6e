"""Score card of a solution: its seeds, played on fresh episodes as they are, with noise, and on similar tasks.

Performance under noise or on another task is a share of what the policy brings at home, counted from what random
actions bring: 1 is all of it kept, 0 is no better than chance. So it means the same where returns are negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError, TrustError
from gymnasium_solver.runs.reader import Run, default_runs_dir, find_run, list_runs, split_checkpoint_ref
from gymnasium_solver.verify.scoring import measures
from gymnasium_solver.verify.scoring.measures import Plays

EPISODES, NOISE = 100, 0.2
RANDOM_EPISODES = 50
FINISHED = ("completed", "failed", "diverged")  # an interrupted run might have solved it
NOT_COMPARED = ("seed", "engine", "vectorization")  # fields in which seeds of one configuration may differ

Say = Callable[[str], None]


def score(
    ref: str,
    *,
    episodes: int = EPISODES,
    seeds: int | None = None,
    transfer: Sequence[str] = (),
    noise: float = NOISE,
    runs_dir: Path | None = None,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Score `RUN`, `RUN/@last` or a group of seeds. Finished runs beside it of the same configuration are its seeds, at
    most `seeds` of them with itself. Nothing is written."""
    if episodes < 2:
        raise ConfigError(f"--episodes {episodes}: one episode says nothing about the spread; use at least 2")
    if noise < 0:
        raise ConfigError(f"--noise {noise}: the noise is a share of the observations' spread; use 0 or more")
    run, checkpoint, runs = find_solution(ref, runs_dir)
    others = [other for other in runs if other.run_id != run.run_id]
    runs = sorted([run, *others][: seeds or None], key=_seed)
    notes: list[str] = []
    plays, chance = _play_all(runs, checkpoint, episodes, transfer, noise, notes, say)
    threshold = run.summary()["threshold"]
    measured = [
        *measures.efficiency({_seed(one): one for one in runs}, threshold),
        measures.success(plays, threshold),
        measures.mean_return(plays, threshold),
        measures.spread(plays),
        measures.transfer(plays, chance, threshold),
        measures.training_time({_seed(one): one for one in runs}),
        measures.robustness(plays, chance, noise, threshold),
    ]
    verdicts = [measure.verdict for measure in measured]
    return {
        "env_id": run.config["env_id"],
        "algo_id": run.config["algo_id"],
        "checkpoint": checkpoint,
        "runs": [one.run_id for one in runs],
        "seeds": [play.seed for play in plays],
        "episodes": episodes,
        "threshold": threshold,
        "random_return": float(chance[""].mean()),
        "noise": noise,
        "passed": verdicts.count("pass"),
        "failed": verdicts.count("fail"),
        "not_measured": verdicts.count("not measured"),
        "measures": [asdict(measure) for measure in measured],
        "notes": notes,
    }


# --- which runs -----------------------------------------------------------------------------------------------------


def find_solution(ref: str, runs_dir: Path | None = None) -> tuple[Run, str, list[Run]]:
    """The run that was named (of a group its first), the checkpoint, and all runs of the same configuration by seed."""
    name, checkpoint = split_checkpoint_ref(ref)
    group = [run for run in list_runs(default_runs_dir(runs_dir)) if run.status.get("group") == Path(name).name]
    run = min(group, key=_seed) if group else find_run(name, runs_dir)
    names = run.checkpoints()
    if not names:
        raise NotFoundError(f"run {run.run_id} has no checkpoint, so there is no policy to score; train it first")
    checkpoint = checkpoint or ("best" if "best" in names else names[0])
    alike: dict[int, Run] = {}
    for other in list_runs(run.path.parent):  # newest first: of two runs of a seed, the later one counts
        if other.status["status"] in FINISHED and _settings(other) == _settings(run):
            alike.setdefault(_seed(other), other)
    alike[_seed(run)] = run
    return run, checkpoint, [alike[seed] for seed in sorted(alike)]


def _seed(run: Run) -> int:
    return int(run.config.get("seed") or 0)


def _settings(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run.config.items() if name not in NOT_COMPARED}


# --- episodes -------------------------------------------------------------------------------------------------------


def _play_all(
    runs: list[Run],
    checkpoint: str,
    episodes: int,
    transfer: Sequence[str],
    noise: float,
    notes: list[str],
    say: Say,
) -> tuple[list[Plays], dict[str, np.ndarray]]:
    """Every policy on every task, and random actions on each of them ("" is the task it was trained for)."""
    from gymnasium_solver.envs import describe
    from gymnasium_solver.train.policy import policy_of
    from gymnasium_solver.train.randomness import generator
    from gymnasium_solver.verify.scoring import playing, transfer_tasks

    played: list[Plays] = []
    chance: dict[str, np.ndarray] = {}
    configs: dict[str, Any] = {}
    success = None
    for run in runs:
        try:
            policy = policy_of(run, checkpoint)
        except TrustError:
            raise
        except SolverError as error:
            notes.append(f"seed {_seed(run)} was not played: {error}")
            continue
        config = policy.config
        if not played:
            tasks = [transfer_tasks.parse_task(text, config) for text in transfer]
            for task in tasks or transfer_tasks.TASKS.get(config.env_id, []):
                other = transfer_tasks.config_of(task, config)
                transfer_tasks.require_same_spaces(task, describe(other), policy.spec)
                configs[task.name] = other
            say("playing random actions, for comparison")
            few = min(episodes, RANDOM_EPISODES)
            chance = {name: playing.play_at_random(c, few) for name, c in {"": config, **configs}.items()}
            success = transfer_tasks.success_config(config) if playing.tells_success(config) else None
        say(f"playing {episodes} episodes of seed {_seed(run)}: unchanged, with noise, on {len(configs)} similar tasks")
        seen = playing.Spread()
        home = playing.play(policy, config, episodes, seen)
        perturb = playing.noise_on(policy.spec, seen, noise, generator(config.seed, "score-noise", 0))
        played.append(
            Plays(
                seed=_seed(run),
                home=home,
                noisy=playing.play(policy, config, episodes, perturb),
                success=playing.play(policy, success, episodes) if success is not None else None,
                tasks={name: playing.play(policy, other, episodes) for name, other in configs.items()},
            )
        )
    if not played:
        raise NotFoundError(f"none of {len(runs)} runs has a checkpoint {checkpoint!r} to play; {notes[0]}")
    return played, chance
