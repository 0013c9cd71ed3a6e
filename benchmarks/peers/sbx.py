"""SBX (Stable-Baselines3 in JAX) on one task of the zoo; arguments and output as peers.sb3."""

from __future__ import annotations

from flax import linen
from sbx import DQN, PPO, SAC
from zoo import TASKS

from peers.sb3 import measure, parse


def main() -> None:
    arguments = parse()
    measure({"ppo": PPO, "dqn": DQN, "sac": SAC}, getattr(linen, TASKS[arguments.task].activation), arguments)


if __name__ == "__main__":
    main()
