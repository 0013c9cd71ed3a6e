"""Settings as they usually are. Outside of a range a setting is suspect, no more.

The ranges span the shipped configurations (docs/results.md), the published tuned settings of the RL Zoo for classic
control, Box2D and MuJoCo, and a factor of two beyond either end.
"""

from __future__ import annotations

from collections.abc import Mapping

Range = tuple[float | None, float | None]

_NETWORKS: Mapping[str, Range] = {"max_grad_norm": (0.05, None), "width": (16, None), "gamma": (0.9, None)}
_ON_POLICY: Mapping[str, Range] = {
    **_NETWORKS,
    "ent_coef": (None, 0.1),
    "gae_lambda": (0.8, None),
    "vf_coef": (0.05, 2.0),
    "log_std_init": (-3.0, 1.5),
    "rollout": (128, 131_072),
}
_REPLAY: Mapping[str, Range] = {
    **_NETWORKS,
    "minibatch": (16, 4096),
    "update_to_data": (0.05, 4.0),
    "learning_starts_share": (None, 0.3),
    "buffer_size": (2000, None),
    "tau": (5e-4, 0.2),
}

USUAL: Mapping[str, Mapping[str, Range]] = {
    "ppo": {
        **_ON_POLICY,
        "policy_lr": (5e-5, 5e-3),
        "clip_range": (0.05, 0.5),
        "n_epochs": (2, 30),
        "minibatch": (16, 16_384),
        "target_kl": (0.002, None),
        "updates": (10, None),
    },
    "a2c": {**_ON_POLICY, "policy_lr": (1e-4, 2e-2), "rollout": (32, 16_384), "updates": (100, None)},
    "reinforce": {**_ON_POLICY, "policy_lr": (1e-4, 5e-2), "updates": (20, None)},
    "dqn": {
        **_REPLAY,
        "policy_lr": (3e-5, 8e-3),
        "epsilon_late": (0.005, 0.4),
        "target_share": (None, 0.1),
        "target_update_interval": (10, None),
    },
    "ddpg": {**_REPLAY, "policy_lr": (1e-4, 8e-3), "noise_std": (0.02, 0.8)},
    "td3": {**_REPLAY, "policy_lr": (1e-4, 8e-3), "noise_std": (0.02, 0.8)},
    "sac": {**_REPLAY, "policy_lr": (1e-4, 8e-3), "ent_coef": (1e-4, 0.8)},
    "q_learning": {"policy_lr": (0.01, 1.0), "gamma": (0.9, None), "epsilon_late": (0.002, 0.4)},
    "sarsa": {"policy_lr": (0.01, 1.0), "gamma": (0.9, None), "epsilon_late": (0.002, 0.4)},
}
SOURCE = "shipped and RL Zoo settings, twice beyond either end"
