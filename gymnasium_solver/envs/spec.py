"""What an algorithm needs to know about an environment, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class ActionSpec:
    """The actions a policy chooses from, whatever nesting the environment's own space has."""

    kind: Literal["discrete", "multi_discrete", "box"]
    sizes: tuple[int, ...]  # categories of each component; () for box
    dim: int  # 1 for discrete, components of multi_discrete, flat size of box
    low: np.ndarray | None = None  # box only, flat float32
    high: np.ndarray | None = None


@dataclass(frozen=True)
class EnvSpec:
    """An environment after preprocessing: shapes as the policy sees them."""

    env_id: str
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype  # float32, or uint8 for images
    is_image: bool
    action: ActionSpec
    max_episode_steps: int | None  # in steps of the policy, so after frame skip
    reward_threshold: float | None
    has_action_mask: bool
    engine: str  # "gymnasium/native" | "gymnasium/sync" | "gymnasium/async" | "envpool" | "compiled"
    reason: str  # one clause on why that engine, for the log
    obs_sizes: tuple[int, ...] = ()  # values of each component, where all of them are discrete (one-hot, side by side)
    changes_reward: bool = False  # a built-in wrapper does: the rewards to learn from are not the environment's own

    def describe(self) -> dict[str, Any]:
        """As a run keeps it, for whoever reads the run without the environment."""
        action = self.action
        bounds = {} if action.low is None or action.high is None else {"low": action.low, "high": action.high}
        return {
            "obs_shape": self.obs_shape,
            "obs_sizes": self.obs_sizes,
            "is_image": self.is_image,
            "action": {"kind": action.kind, "sizes": action.sizes, "dim": action.dim, **bounds},
            "max_episode_steps": self.max_episode_steps,
        }
