"""Stable-Baselines3 on one task of the zoo; one JSON line on stdout.

python -m peers.sb3 --task cartpole --seed 0 --threads 1              # until solved
python -m peers.sb3 --task cartpole --seed 0 --threads 1 --steps 100000   # throughput over exactly that many steps
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from statistics import fmean
from typing import Any

from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
from zoo import TASKS, Task

ALGORITHMS = {"ppo": PPO, "dqn": DQN, "sac": SAC}
EPISODES = 20


class Watch(BaseCallback):
    """Notes the speed, and ends training as soon as the task is solved.

    Solved is the mean of the last 20 training episodes. Where a rollout takes many seconds, the deterministic policy is
    also evaluated on 20 fresh episodes after each update, with the clock stopped: a peer pays nothing for being looked
    at. (From half the threshold on; below it, evaluations would take longer than the training.)
    """

    def __init__(self, task: Task, steps: int | None, max_seconds: float) -> None:
        super().__init__()
        self.task, self.steps, self.max_seconds = task, steps, max_seconds
        self.evaluates = steps is None and task.rollout > 4096
        self.threshold = float("inf") if task.solved_at is None else task.solved_at
        self.returns: deque[float] = deque(maxlen=EPISODES)
        self.solved = False
        self.paused = 0.0
        self.warm: tuple[float, int] | None = None

    def _on_training_start(self) -> None:
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started - self.paused

    def _on_rollout_start(self) -> None:
        """Called after each update."""
        if self.steps and self.warm is None and self.num_timesteps >= self.task.warm_from(self.steps):
            self.warm = (self.seconds, self.num_timesteps)
        if self.evaluates and len(self.returns) == EPISODES and fmean(self.returns) >= self.threshold / 2:
            begin = time.perf_counter()
            env = make_vec_env(self.task.env_id, n_envs=self.task.n_envs, seed=10_000 + self.num_timesteps)
            mean, _ = evaluate_policy(self.model, env, n_eval_episodes=EPISODES)
            env.close()
            assert isinstance(mean, float)
            self.solved = mean >= self.threshold
            self.paused += time.perf_counter() - begin

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        if ended and self.steps is None:
            self.returns.extend(ended)
            self.solved = self.solved or (len(self.returns) == EPISODES and fmean(self.returns) >= self.threshold)
        return not self.solved and self.seconds < self.max_seconds


def layers(task: Task) -> Any:
    """The hidden layers in the form that SB3's policy for the algorithm takes them."""
    hidden = list(task.hidden_dims)
    return {"ppo": {"pi": hidden, "vf": hidden}, "sac": {"pi": hidden, "qf": hidden}, "dqn": hidden}[task.algorithm]


def measure(algorithms: dict[str, Any], activation: Any, arguments: argparse.Namespace) -> None:
    """Train the task's algorithm (SB3's, or one with its interface) as asked and print the result."""
    task = TASKS[arguments.task]
    settings = {
        name: (lambda left, value=value: left * value) if name in task.linear else value
        for name, value in task.settings.items()
    }
    env = make_vec_env(task.env_id, n_envs=task.n_envs, seed=arguments.seed)
    if task.normalize:
        env = VecNormalize(env, gamma=task.settings["gamma"])
    model = algorithms[task.algorithm](
        "MlpPolicy",
        env,
        seed=arguments.seed,
        device="cpu",
        policy_kwargs={"net_arch": layers(task), "activation_fn": activation, **task.policy},
        **settings,
    )
    watch = Watch(task, arguments.steps, arguments.max_seconds)
    model.learn(arguments.steps or task.max_env_steps, callback=watch)
    seconds = watch.seconds
    result = {
        "env_steps": model.num_timesteps,
        "train_seconds": round(seconds, 3),
        "steps_per_second": round(model.num_timesteps / seconds, 1),
        "solved": watch.solved,
        "paused_seconds": round(watch.paused, 3),
    }
    if watch.warm:
        since, steps = watch.warm
        result["warm_steps_per_second"] = round((model.num_timesteps - steps) / (seconds - since), 1)
    print(json.dumps(result), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="measure throughput over this many env steps; default: until solved")
    parser.add_argument("--max-seconds", type=float, default=240.0)
    parser.add_argument("--threads", type=int, default=1, help="PyTorch threads")
    return parser.parse_args()


def main() -> None:
    import torch

    arguments = parse()
    torch.set_num_threads(arguments.threads)
    measure(ALGORITHMS, {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[TASKS[arguments.task].activation], arguments)


if __name__ == "__main__":
    main()
