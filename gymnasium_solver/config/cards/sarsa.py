"""SARSA."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gymnasium_solver.config.cards.q_learning import CARD as Q_LEARNING
from gymnasium_solver.config.tabular import TabularConfig


class SarsaConfig(TabularConfig):
    algo_id: Literal["sarsa"] = "sarsa"


CARD = replace(
    Q_LEARNING,
    algo_id="sarsa",
    title="SARSA: a table of action values, learnt towards the action taken next",
    config=SarsaConfig,
    make="gymnasium_solver.algorithms.sarsa:make",
    tried={},
    quick=(),
    order=9,
)
