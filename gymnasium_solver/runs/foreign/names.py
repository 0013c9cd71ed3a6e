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

Names = Mapping[str, str | To | tuple[To, ...]]

SB3: Names = {
    "rollout/ep_rew_mean": REWARD,
    "rollout/ep_len_mean": LENGTH,
    "rollout/exploration_rate": "train/hp/epsilon",
    "eval/mean_reward": EVALUATED,
    "eval/mean_ep_length": "val/roll/ep_len_mean",
    "eval/std_reward": "val/roll/ep_rew_std",
    "train/approx_kl": KL,
    "train/clip_fraction": CLIPPED,
    "train/clip_range": "train/hp/clip_range",
    "train/clip_range_vf": "train/hp/clip_range_vf",
    "train/entropy_loss": ENTROPY_LOSS,
    "train/explained_variance": EXPLAINED,
    "train/value_loss": VALUE_LOSS,
    "train/policy_gradient_loss": POLICY_LOSS,
    "train/policy_loss": POLICY_LOSS,
    "train/actor_loss": POLICY_LOSS,
    "train/critic_loss": VALUE_LOSS,
    "train/loss": TOTAL_LOSS,
    "train/learning_rate": LEARNING_RATE,
    "train/std": "train/metrics/policy_std",
    "train/ent_coef": ALPHA,
    "train/n_updates": UPDATES,
    "time/fps": "train/sys/fps_total",
    "time/episodes": EPISODES,
    "time/iterations": EPOCHS,
    "monitor/r": RETURNS,
    "monitor/l": LENGTHS,
}

CLEANRL: Names = {
    "charts/episodic_return": RETURNS,
    "charts/episode_reward": RETURNS,
    "charts/episodic_length": LENGTHS,
    "charts/avg_episodic_return": REWARD,
    "charts/avg_episodic_length": LENGTH,
    "charts/learning_rate": LEARNING_RATE,
    "charts/actor_learning_rate": LEARNING_RATE,
    "charts/epsilon": "train/hp/epsilon",
    "charts/SPS": "train/sys/fps_total",
    "charts/update": EPOCHS,
    "losses/approx_kl": KL,
    "losses/clipfrac": CLIPPED,
    "losses/entropy": ENTROPY,
    "losses/explained_variance": EXPLAINED,
    "losses/policy_loss": POLICY_LOSS,
    "losses/actor_loss": POLICY_LOSS,
    "losses/value_loss": To(VALUE_LOSS, 2.0),  # its PPO logs half of the squared error
    "losses/td_loss": VALUE_LOSS,
    "losses/loss": VALUE_LOSS,
    "losses/qf_loss": VALUE_LOSS,
    "losses/qf1_loss": VALUE_LOSS,
    "losses/q_values": Q_MEAN,
    "losses/qf1_values": Q_MEAN,
    "losses/alpha": ALPHA,
    "eval/episodic_return": TEST_RETURNS,
}

_LEARNER = "info/learner/*/learner_stats"
RLLIB: Names = {
    "env_runners/episode_return_mean": REWARD,
    "env_runners/episode_reward_mean": REWARD,
    "sampler_results/episode_reward_mean": REWARD,
    "episode_reward_mean": REWARD,
    "episode_return_mean": REWARD,
    "env_runners/episode_len_mean": LENGTH,
    "sampler_results/episode_len_mean": LENGTH,
    "episode_len_mean": LENGTH,
    "episodes_total": EPISODES,
    "env_runners/num_episodes_lifetime": EPISODES,
    "training_iteration": EPOCHS,
    "evaluation/env_runners/episode_return_mean": EVALUATED,
    "evaluation/env_runners/episode_reward_mean": EVALUATED,
    "evaluation/sampler_results/episode_reward_mean": EVALUATED,
    "evaluation/episode_reward_mean": EVALUATED,
    "evaluation/env_runners/episode_len_mean": "val/roll/ep_len_mean",
    "evaluation/episode_len_mean": "val/roll/ep_len_mean",
    "num_env_steps_sampled_throughput_per_sec": "train/sys/fps",
    "num_env_steps_sampled_lifetime_throughput": "train/sys/fps",
    "num_env_steps_sampled_lifetime_throughput/throughput_since_last_reduce": "train/sys/fps",
    f"{_LEARNER}/kl": KL,
    f"{_LEARNER}/entropy": ENTROPY,
    f"{_LEARNER}/vf_explained_var": EXPLAINED,
    f"{_LEARNER}/policy_loss": POLICY_LOSS,
    f"{_LEARNER}/vf_loss": VALUE_LOSS,
    f"{_LEARNER}/total_loss": TOTAL_LOSS,
    f"{_LEARNER}/cur_lr": LEARNING_RATE,
    f"{_LEARNER}/grad_gnorm": GRAD_NORM,
    f"{_LEARNER}/mean_q": Q_MEAN,
    f"{_LEARNER}/actor_loss": POLICY_LOSS,
    f"{_LEARNER}/critic_loss": VALUE_LOSS,
    f"{_LEARNER}/alpha_value": ALPHA,
    "info/learner/*/mean_td_error": TD_ERROR,
    "info/learner/*/num_grad_updates_lifetime": UPDATES,
    "learners/*/mean_kl_loss": KL,
    "learners/*/entropy": ENTROPY,
    "learners/*/vf_explained_var": EXPLAINED,
    "learners/*/policy_loss": POLICY_LOSS,
    "learners/*/actor_loss": POLICY_LOSS,
    "learners/*/policy_loss_mean": POLICY_LOSS,
    "learners/*/vf_loss": VALUE_LOSS,
    "learners/*/critic_loss": VALUE_LOSS,
    "learners/*/qf_loss": VALUE_LOSS,
    "learners/*/qf_mean": Q_MEAN,
    "learners/*/total_loss": TOTAL_LOSS,
    "learners/*/alpha_value": ALPHA,
    "learners/*/td_error_mean": TD_ERROR,
    "learners/*/default_optimizer_learning_rate": LEARNING_RATE,
    "learners/*/default_optimizer_lr": LEARNING_RATE,
    "learners/*/gradients_default_optimizer_global_norm": GRAD_NORM,
    "learners/*/num_grad_updates_lifetime": UPDATES,
}

TIANSHOU: Names = {
    "train/reward": REWARD,
    "train/returns_stat/mean": REWARD,
    "training/returns_stat/mean": REWARD,
    "train/length": LENGTH,
    "train/lens_stat/mean": LENGTH,
    "training/lens_stat/mean": LENGTH,
    "train/episode": EPISODES,
    "info/train_episode": EPISODES,
    "test/reward": EVALUATED,
    "test/returns_stat/mean": EVALUATED,
    "test/reward_std": "val/roll/ep_rew_std",
    "test/returns_stat/std": "val/roll/ep_rew_std",
    "test/returns_stat/min": "val/roll/ep_rew_min",
    "test/returns_stat/max": "val/roll/ep_rew_max",
    "test/length": "val/roll/ep_len_mean",
    "test/lens_stat/mean": "val/roll/ep_len_mean",
    "update/loss/clip": POLICY_LOSS,
    "update/clip_loss/mean": POLICY_LOSS,
    "update/loss/actor": POLICY_LOSS,
    "update/actor_loss": POLICY_LOSS,
    "update/actor_loss/mean": POLICY_LOSS,
    "update/loss/vf": VALUE_LOSS,
    "update/vf_loss/mean": VALUE_LOSS,
    "update/loss/critic": VALUE_LOSS,
    "update/critic_loss": VALUE_LOSS,
    "update/loss/critic1": VALUE_LOSS,
    "update/critic1_loss": VALUE_LOSS,
    "update/loss/ent": ENTROPY,
    "update/ent_loss/mean": ENTROPY,
    "update/loss": TOTAL_LOSS,
    "update/loss/mean": TOTAL_LOSS,
    "update/alpha": ALPHA,
    "update/gradient_step": UPDATES,
    "train/eps": "train/hp/epsilon",
    "training/env_speed": "train/sys/fps",
}

# Where no library is recognised: the last part of the name, in lower case, dashes and blanks as underscores.
COMMON: Names = {
    **dict.fromkeys(("ep_rew_mean", "episode_reward_mean", "episode_return_mean", "mean_reward"), REWARD),
    **dict.fromkeys(("mean_return", "avg_reward", "average_reward", "reward", "return", "returns"), REWARD),
    **dict.fromkeys(("episode_reward", "episodic_return", "episode_return", "ep_reward", "ep_return"), RETURNS),
    "reward_mean": REWARD,
    "score": RETURNS,
    **dict.fromkeys(("ep_len_mean", "episode_len_mean", "mean_ep_length", "episode_length_mean"), LENGTH),
    **dict.fromkeys(("episodic_length", "episode_length", "ep_length", "episode_len", "ep_len"), LENGTHS),
    **dict.fromkeys(("eval_reward", "eval_return", "eval_mean_reward", "test_reward", "eval_reward_mean"), EVALUATED),
    **dict.fromkeys(("kl", "approx_kl", "kl_divergence", "kl_div", "mean_kl"), KL),
    **dict.fromkeys(("clip_fraction", "clipfrac", "clip_frac"), CLIPPED),
    **dict.fromkeys(("explained_variance", "explained_var", "vf_explained_var"), EXPLAINED),
    "entropy": ENTROPY,
    "entropy_loss": ENTROPY_LOSS,
    **dict.fromkeys(("policy_loss", "pg_loss", "actor_loss", "pi_loss", "policy_gradient_loss"), POLICY_LOSS),
    **dict.fromkeys(("value_loss", "v_loss", "vf_loss", "critic_loss", "td_loss", "q_loss"), VALUE_LOSS),
    **dict.fromkeys(("loss", "total_loss"), TOTAL_LOSS),
    **dict.fromkeys(("lr", "learning_rate"), LEARNING_RATE),
    **dict.fromkeys(("epsilon", "exploration_rate"), "train/hp/epsilon"),
    **dict.fromkeys(("grad_norm", "gradient_norm", "global_norm"), GRAD_NORM),
    **dict.fromkeys(("q_values", "q_value", "mean_q", "q_mean"), Q_MEAN),
    **dict.fromkeys(("td_error", "mean_td_error"), TD_ERROR),
    **dict.fromkeys(("alpha", "temperature"), ALPHA),
    **dict.fromkeys(("fps", "sps"), "train/sys/fps"),
    **dict.fromkeys(("episodes", "episode", "num_episodes", "n_episodes"), EPISODES),
}  # fmt: skip

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


def _as_targets(entry: str | To | tuple[To, ...]) -> tuple[To, ...]:
    return (To(entry),) if isinstance(entry, str) else (entry,) if isinstance(entry, To) else entry
