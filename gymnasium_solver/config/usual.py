"""Numbers that the cards of several families share: usual ranges, and what is tuned first.

Usual ranges span the shipped configurations (docs/results.md), the published tuned settings of the RL Zoo for classic
control, Box2D and MuJoCo, and a factor of two beyond either end.
"""

from __future__ import annotations

from collections.abc import Mapping

from gymnasium_solver.config.cards.card import Around, Range, Search

SOURCE = "shipped and RL Zoo settings, widened by a factor of 2"
NETWORKS: Mapping[str, Range] = {"max_grad_norm": (0.05, None), "width": (16, None), "gamma": (0.9, None)}
GAMMAS: Search = [0.9, 0.95, 0.98, 0.99, 0.995, 0.999]
LEARNING: Mapping[str, Search] = {"policy_lr": Around(10), "gamma": GAMMAS}
BATCHES: list[float] = [128, 256, 512]
