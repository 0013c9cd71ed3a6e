"""What other libraries call our metrics. A name may stand for several of ours, some with a factor.

Names are those of the loggers: Stable-Baselines3 2.x `logger.record`, CleanRL `writer.add_scalar`, RLlib's result
dictionary (old and new API stack), Tianshou 0.4 to 2.x `BaseLogger`. `*` is any one part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal


@dataclass(frozen=True)
class To:
    """Where a series goes. `returns` and `lengths` are one value an episode; `test` are episodes after training."""

    name: str = ""
    factor: float = 1.0
    kind: Literal["values", "returns", "lengths", "test"] = "values"


RETURNS, LENGTHS, TEST_RETURNS = To(kind="returns"), To(kind="lengths"), To(kind="test")
ENTROPY = (To("train/metrics/entropy"), To("train/loss/entropy", -1.0))
ENTROPY_LOSS = (To("train/loss/entropy"), To("train/metrics/entropy", -1.0))
REWARD, LENGTH = "train/roll/ep_rew_mean", "train/roll/ep_len_mean"
EVALUATED = "val/roll/ep_rew_mean"
KL, CLIPPED = "train/metrics/kl_divergence", "train/metrics/clip_fraction"
EXPLAINED = "train/metrics/explained_variance"
POLICY_LOSS, VALUE_LOSS, TOTAL_LOSS = "train/loss/policy", "train/loss/value", "train/loss/total"
LEARNING_RATE = "train/hp/policy_lr"
Q_MEAN, TD_ERROR, ALPHA = "train/metrics/q_mean", "train/metrics/td_error", "train/metrics/alpha"
GRAD_NORM = "train/metrics/grad_norm/all"
UPDATES, EPISODES, EPOCHS = "train/cnt/updates", "train/cnt/episodes", "train/cnt/epochs"

Target = str | To | tuple[To, ...]
Names = Mapping[str, Target]


def _by_name(tables: Mapping[Target, tuple[str, ...]]) -> Names:
    """Tables are written as ours: theirs, and looked up the other way round."""
    return {theirs: ours for ours, names in tables.items() for theirs in names}


SB3 = _by_name({
    REWARD: ("rollout/ep_rew_mean",),
    LENGTH: ("rollout/ep_len_mean",),
    "train/hp/epsilon": ("rollout/exploration_rate",),
    EVALUATED: ("eval/mean_reward",),
    "val/roll/ep_len_mean": ("eval/mean_ep_length",),
    "val/roll/ep_rew_std": ("eval/std_reward",),
    KL: ("train/approx_kl",),
    CLIPPED: ("train/clip_fraction",),
    "train/hp/clip_range": ("train/clip_range",),
    "train/hp/clip_range_vf": ("train/clip_range_vf",),
    ENTROPY_LOSS: ("train/entropy_loss",),
    EXPLAINED: ("train/explained_variance",),
    VALUE_LOSS: ("train/value_loss", "train/critic_loss"),
    POLICY_LOSS: ("train/policy_gradient_loss", "train/policy_loss", "train/actor_loss"),
    TOTAL_LOSS: ("train/loss",),
    LEARNING_RATE: ("train/learning_rate",),
    "train/metrics/policy_std": ("train/std",),
    ALPHA: ("train/ent_coef",),
    UPDATES: ("train/n_updates",),
    "train/sys/fps_total": ("time/fps",),
    EPISODES: ("time/episodes",),
    EPOCHS: ("time/iterations",),
    RETURNS: ("monitor/r",),
    LENGTHS: ("monitor/l",),
})  # fmt: skip

CLEANRL = _by_name({
    RETURNS: ("charts/episodic_return", "charts/episode_reward"),
    LENGTHS: ("charts/episodic_length",),
    REWARD: ("charts/avg_episodic_return",),
    LENGTH: ("charts/avg_episodic_length",),
    LEARNING_RATE: ("charts/learning_rate", "charts/actor_learning_rate"),
    "train/hp/epsilon": ("charts/epsilon",),
    "train/sys/fps_total": ("charts/SPS",),
    EPOCHS: ("charts/update",),
    KL: ("losses/approx_kl",),
    CLIPPED: ("losses/clipfrac",),
    ENTROPY: ("losses/entropy",),
    EXPLAINED: ("losses/explained_variance",),
    POLICY_LOSS: ("losses/policy_loss", "losses/actor_loss"),
    To(VALUE_LOSS, 2.0): ("losses/value_loss",),  # its PPO logs half of the squared error
    VALUE_LOSS: ("losses/td_loss", "losses/loss", "losses/qf_loss", "losses/qf1_loss"),
    Q_MEAN: ("losses/q_values", "losses/qf1_values"),
    ALPHA: ("losses/alpha",),
    TEST_RETURNS: ("eval/episodic_return",),
})  # fmt: skip

_LEARNER = "info/learner/*/learner_stats"
RLLIB = _by_name({
    REWARD: (
        "env_runners/episode_return_mean", "env_runners/episode_reward_mean", "sampler_results/episode_reward_mean",
        "episode_reward_mean", "episode_return_mean",
    ),
    LENGTH: ("env_runners/episode_len_mean", "sampler_results/episode_len_mean", "episode_len_mean"),
    EPISODES: ("episodes_total", "env_runners/num_episodes_lifetime"),
    EPOCHS: ("training_iteration",),
    EVALUATED: (
        "evaluation/env_runners/episode_return_mean", "evaluation/env_runners/episode_reward_mean",
        "evaluation/sampler_results/episode_reward_mean", "evaluation/episode_reward_mean",
    ),
    "val/roll/ep_len_mean": ("evaluation/env_runners/episode_len_mean", "evaluation/episode_len_mean"),
    "train/sys/fps": (
        "num_env_steps_sampled_throughput_per_sec", "num_env_steps_sampled_lifetime_throughput",
        "num_env_steps_sampled_lifetime_throughput/throughput_since_last_reduce",
    ),
    KL: (f"{_LEARNER}/kl", "learners/*/mean_kl_loss"),
    ENTROPY: (f"{_LEARNER}/entropy", "learners/*/entropy"),
    EXPLAINED: (f"{_LEARNER}/vf_explained_var", "learners/*/vf_explained_var"),
    POLICY_LOSS: (
        f"{_LEARNER}/policy_loss", f"{_LEARNER}/actor_loss", "learners/*/policy_loss", "learners/*/actor_loss",
        "learners/*/policy_loss_mean",
    ),
    VALUE_LOSS: (
        f"{_LEARNER}/vf_loss", f"{_LEARNER}/critic_loss", "learners/*/vf_loss", "learners/*/critic_loss",
        "learners/*/qf_loss",
    ),
    TOTAL_LOSS: (f"{_LEARNER}/total_loss", "learners/*/total_loss"),
    LEARNING_RATE: (
        f"{_LEARNER}/cur_lr", "learners/*/default_optimizer_learning_rate", "learners/*/default_optimizer_lr",
    ),
    GRAD_NORM: (f"{_LEARNER}/grad_gnorm", "learners/*/gradients_default_optimizer_global_norm"),
    Q_MEAN: (f"{_LEARNER}/mean_q", "learners/*/qf_mean"),
    ALPHA: (f"{_LEARNER}/alpha_value", "learners/*/alpha_value"),
    TD_ERROR: ("info/learner/*/mean_td_error", "learners/*/td_error_mean"),
    UPDATES: ("info/learner/*/num_grad_updates_lifetime", "learners/*/num_grad_updates_lifetime"),
})  # fmt: skip

TIANSHOU = _by_name({
    REWARD: ("train/reward", "train/returns_stat/mean", "training/returns_stat/mean"),
    LENGTH: ("train/length", "train/lens_stat/mean", "training/lens_stat/mean"),
    EPISODES: ("train/episode", "info/train_episode"),
    EVALUATED: ("test/reward", "test/returns_stat/mean"),
    "val/roll/ep_rew_std": ("test/reward_std", "test/returns_stat/std"),
    "val/roll/ep_rew_min": ("test/returns_stat/min",),
    "val/roll/ep_rew_max": ("test/returns_stat/max",),
    "val/roll/ep_len_mean": ("test/length", "test/lens_stat/mean"),
    POLICY_LOSS: (
        "update/loss/clip", "update/clip_loss/mean", "update/loss/actor", "update/actor_loss", "update/actor_loss/mean",
    ),
    VALUE_LOSS: (
        "update/loss/vf", "update/vf_loss/mean", "update/loss/critic", "update/critic_loss", "update/loss/critic1",
        "update/critic1_loss",
    ),
    ENTROPY: ("update/loss/ent", "update/ent_loss/mean"),
    TOTAL_LOSS: ("update/loss", "update/loss/mean"),
    ALPHA: ("update/alpha",),
    UPDATES: ("update/gradient_step",),
    "train/hp/epsilon": ("train/eps",),
    "train/sys/fps": ("training/env_speed",),
})  # fmt: skip

# Where no library is recognised: the last part of the name, in lower case, dashes and blanks as underscores.
COMMON = _by_name({
    REWARD: (
        "ep_rew_mean", "episode_reward_mean", "episode_return_mean", "mean_reward", "mean_return", "avg_reward",
        "average_reward", "reward", "return", "returns", "reward_mean",
    ),
    RETURNS: ("episode_reward", "episodic_return", "episode_return", "ep_reward", "ep_return", "score"),
    LENGTH: ("ep_len_mean", "episode_len_mean", "mean_ep_length", "episode_length_mean"),
    LENGTHS: ("episodic_length", "episode_length", "ep_length", "episode_len", "ep_len"),
    EVALUATED: ("eval_reward", "eval_return", "eval_mean_reward", "test_reward", "eval_reward_mean"),
    KL: ("kl", "approx_kl", "kl_divergence", "kl_div", "mean_kl"),
    CLIPPED: ("clip_fraction", "clipfrac", "clip_frac"),
    EXPLAINED: ("explained_variance", "explained_var", "vf_explained_var"),
    ENTROPY: ("entropy",),
    ENTROPY_LOSS: ("entropy_loss",),
    POLICY_LOSS: ("policy_loss", "pg_loss", "actor_loss", "pi_loss", "policy_gradient_loss"),
    VALUE_LOSS: ("value_loss", "v_loss", "vf_loss", "critic_loss", "td_loss", "q_loss"),
    TOTAL_LOSS: ("loss", "total_loss"),
    LEARNING_RATE: ("lr", "learning_rate"),
    "train/hp/epsilon": ("epsilon", "exploration_rate"),
    GRAD_NORM: ("grad_norm", "gradient_norm", "global_norm"),
    Q_MEAN: ("q_values", "q_value", "mean_q", "q_mean"),
    TD_ERROR: ("td_error", "mean_td_error"),
    ALPHA: ("alpha", "temperature"),
    "train/sys/fps": ("fps", "sps"),
    EPISODES: ("episodes", "episode", "num_episodes", "n_episodes"),
})  # fmt: skip

LIBRARIES: dict[str, Names] = {"sb3": SB3, "cleanrl": CLEANRL, "rllib": RLLIB, "tianshou": TIANSHOU}

# Losses that mean something else to these algorithms.
BY_ALGORITHM: dict[tuple[str, str], Names] = {
    ("sb3", "dqn"): {"train/loss": (To(VALUE_LOSS), To(TOTAL_LOSS))},
    ("tianshou", "dqn"): {"update/loss": (To(VALUE_LOSS), To(TOTAL_LOSS))},
}

# The x axis, most telling first.
STEPS = {
    "sb3": ("time/total_timesteps",),
    "cleanrl": ("global_step",),
    "rllib": (
        "num_env_steps_sampled_lifetime", "env_runners/num_env_steps_sampled_lifetime", "timesteps_total",
        "num_env_steps_sampled", "info/num_env_steps_sampled", "counters/num_env_steps_sampled",
    ),
    "tianshou": ("training/env_step", "train/env_step"),
}  # fmt: skip
COMMON_STEPS = (
    "env_steps", "env_step", "global_step", "total_timesteps", "timesteps_total", "num_timesteps", "timesteps",
    "timestep", "total_steps", "total_env_steps", "num_env_steps", "frames", "total_frames", "num_frames", "steps",
    "step", "_step",
)  # fmt: skip
COUNTS_ONLY = ("training_iteration", "iteration", "iterations", "epoch", "update", "episode", "episodes")

# What a run has to show of itself before its cause can be told; metrics by algorithm family.
EXPECTED_ON_POLICY = (
    REWARD, LENGTH, EVALUATED, POLICY_LOSS, VALUE_LOSS, "train/metrics/entropy", EXPLAINED, LEARNING_RATE, GRAD_NORM,
)  # fmt: skip
EXPECTED = {
    "ppo": (*EXPECTED_ON_POLICY, KL, CLIPPED),
    "a2c": EXPECTED_ON_POLICY,
    "reinforce": EXPECTED_ON_POLICY,
    "dqn": (REWARD, LENGTH, EVALUATED, VALUE_LOSS, "train/hp/epsilon", LEARNING_RATE, Q_MEAN, TD_ERROR),
    "ddpg": (REWARD, LENGTH, EVALUATED, POLICY_LOSS, VALUE_LOSS, LEARNING_RATE, Q_MEAN, TD_ERROR),
    "td3": (REWARD, LENGTH, EVALUATED, POLICY_LOSS, VALUE_LOSS, LEARNING_RATE, Q_MEAN, TD_ERROR),
    "sac": (REWARD, LENGTH, EVALUATED, POLICY_LOSS, VALUE_LOSS, LEARNING_RATE, Q_MEAN, TD_ERROR, ALPHA),
}


def targets(library: str, algo_id: str | None, name: str) -> tuple[To, ...]:
    """Where a series of this name goes; nothing if it is not known."""
    tables = [BY_ALGORITHM.get((library, algo_id or ""), {}), LIBRARIES.get(library, {})]
    for table in tables:
        if name in table:
            return _as_targets(table[name])
        for pattern in (x for x in table if "*" in x):
            if fnmatchcase(name, pattern) and name.count("/") == pattern.count("/"):
                return _as_targets(table[pattern])
    if library in LIBRARIES:
        return ()
    common = _as_targets(COMMON.get(common_name(name), ()))
    if re.search(r"(^|[/_. -])(eval|evaluation|val|valid|validation|test)[/_. -]", name.lower()):
        return tuple(To(_EVALUATION[to.name or to.kind]) for to in common if (to.name or to.kind) in _EVALUATION)
    return common


def matches(library: str, names: Mapping[str, object]) -> int:
    """How many of the names are this library's."""
    return sum(bool(targets(library, None, name)) or name in STEPS[library] for name in names)


def common_name(name: str) -> str:
    return name.rsplit("/", 1)[-1].strip().lower().replace(" ", "_").replace("-", "_")


_EVALUATION = {
    REWARD: EVALUATED,
    "returns": EVALUATED,
    EVALUATED: EVALUATED,
    LENGTH: "val/roll/ep_len_mean",
    "lengths": "val/roll/ep_len_mean",
}


def _as_targets(entry: Target) -> tuple[To, ...]:
    return (To(entry),) if isinstance(entry, str) else (entry,) if isinstance(entry, To) else entry
