"""SARSA."""

from __future__ import annotations

from typing import Literal

from gymnasium_solver.config.cards.card import Card
from gymnasium_solver.config.tabular import PROBE, SEARCH, USUAL, TabularConfig, defaults, require_table


class SarsaConfig(TabularConfig):
    algo_id: Literal["sarsa"] = "sarsa"


CARD = Card(
    algo_id="sarsa",
    title="SARSA: a table of action values, learnt towards the action taken next",
    family="tabular",
    config=SarsaConfig,
    make="gymnasium_solver.algorithms.sarsa:make",
    feed="rollout",
    actions=("discrete",),
    instead={"multi_discrete": "ppo", "box": "ppo"},
    defaults=defaults,
    usual=USUAL,
    search=SEARCH,
    probe=PROBE,
    needs_discrete_observations=True,
    requires=require_table,
    order=9,
)
