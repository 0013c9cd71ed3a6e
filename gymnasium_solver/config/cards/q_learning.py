"""Q-learning."""

from __future__ import annotations

from typing import Literal

from gymnasium_solver.config.cards.card import Card
from gymnasium_solver.config.tabular import PROBE, SEARCH, USUAL, TabularConfig, defaults, require_table


class QLearningConfig(TabularConfig):
    algo_id: Literal["q_learning"] = "q_learning"


CARD = Card(
    algo_id="q_learning",
    title="Q-learning: a table of action values, learnt towards the best next action",
    family="tabular",
    config=QLearningConfig,
    make="gymnasium_solver.algorithms.q_learning:make",
    feed="rollout",
    actions=("discrete",),
    instead={"multi_discrete": "ppo", "box": "ppo"},
    defaults=defaults,
    usual=USUAL,
    search=SEARCH,
    probe=PROBE,
    needs_discrete_observations=True,
    requires=require_table,
    tried={"table": 1},
    quick=("FrozenLake-v1", "CliffWalking-v1"),
    order=8,
)
