"""Every metric of a run: its name, unit, meaning, and the healthy range together with where that range comes from.

A range is a first hint, not a verdict: healthy runs leave most of them now and then. See `source` for how much to
make of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

SPEC = "specification, section 3: starting range for PPO"
MEASURED = "measured on 124 small PPO runs on CartPole"
INVARIANT = "invariant: outside it something is wrong, whatever the return"


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    meaning: str
    low: float | None = None
    high: float | None = None
    source: str | None = None

    @property
    def has_range(self) -> bool:
        return self.low is not None or self.high is not None


METRICS: tuple[Metric, ...] = (
    # Episodes of training
    Metric("train/roll/ep_rew_mean", "reward", "Mean return of the last 100 training episodes."),
    Metric("train/roll/ep_rew_best", "reward", "Highest return of a training episode so far."),
    Metric("train/roll/ep_rew_last", "reward", "Return of the training episode that ended last."),
    Metric("train/roll/ep_len_mean", "steps", "Mean length of the last 100 training episodes."),
    # Losses, means over the minibatches of an update
    Metric("train/loss/policy", "1", "Policy loss; its sign and size say little, a value of exactly 0 is suspicious."),
    Metric("train/loss/value", "reward²", "Squared error of the value function against its targets."),
    Metric("train/loss/entropy", "nats", "Entropy term of the loss: minus the mean entropy, before its coefficient."),
    Metric("train/loss/total", "1", "What the optimiser minimises: the weighted sum of the terms above."),
    # The update
    Metric(
        "train/metrics/kl_divergence", "nats", "Estimated KL divergence from the policy that acted to the updated one.",
        0.0, 0.02, f"{SPEC}; below 0 the estimator itself is wrong (invariant)",
    ),
    Metric(
        "train/metrics/clip_fraction", "share", "Samples whose probability ratio left the clip range.", 0.1, 0.3, SPEC
    ),
    Metric(
        "train/metrics/explained_variance", "share", "Variance of the returns that the value function explains.",
        0.7, 1.0, f"{SPEC}; every run is below at first, and stays so where returns hardly vary",
    ),
    Metric("train/metrics/entropy", "nats", "Mean entropy of the policy; it should fall gradually."),
    Metric(
        "train/metrics/entropy_relative", "share", "Entropy as a share of that of the uniform policy.", 0.1, 0.97,
        f"{MEASURED}: past half, above 0.97: 0 % of healthy, 42 % of failed; early below 0.1: collapse",
    ),
    Metric("train/metrics/policy_std", "action", "Mean standard deviation of a Gaussian policy."),
    Metric(
        "train/metrics/ratio_deviation_first", "1", "Largest |ratio − 1| in the first minibatch, before any step.",
        0.0, 1e-3, f"{INVARIANT} (old log-probabilities must be those of the policy that acted)",
    ),
    Metric("train/metrics/ratio_deviation", "1", "Largest abs(ratio - 1) of a minibatch, mean over the update."),
    Metric("train/metrics/ratio_deviation_max", "1", "Largest abs(ratio - 1) of the whole update."),
    Metric("train/metrics/grad_clip_fraction", "share", "Gradient steps whose norm was clipped."),
    Metric("train/metrics/grad_norm/actor_head", "1", "Gradient norm of the policy's last layer, before clipping."),
    Metric("train/metrics/grad_norm/critic_head", "1", "Gradient norm of the value's last layer, before clipping."),
    Metric("train/metrics/grad_norm/trunk", "1", "Gradient norm of the layers below the heads, before clipping."),
    Metric("train/metrics/grad_norm/all", "1", "Norm of the whole gradient, before clipping."),
    Metric("train/metrics/update_norm_ratio", "1", "Size of the update's parameter change relative to the parameters."),
    Metric("train/metrics/dead_units", "share", "Hidden units whose output hardly varied over rollout or minibatch."),
    Metric("train/metrics/param_norm", "1", "Norm of all parameters."),
    Metric("train/metrics/param_checksum", "1", "Sum over the parameters that differs as soon as two copies differ."),
    Metric("train/metrics/epochs_done", "share", "Planned minibatch steps made before target KL stopped them."),
    # Action values
    Metric("train/metrics/q_mean", "reward", "Mean value of the actions that were replayed."),
    Metric(
        "train/metrics/q_max", "reward", "Largest absolute action value, mean over the updates of an epoch; beyond "
        "train/metrics/q_bound the values have diverged (SAC's hold an entropy bonus as well)."
    ),
    Metric("train/metrics/q_bound", "reward", "What no return can exceed: the largest reward so far / (1 − gamma)."),
    Metric("train/metrics/td_error", "reward", "Mean absolute temporal-difference error."),
    Metric(
        "train/metrics/target_distance", "1", "Distance of the target network from the online one, relative to its "
        "size; if it stays 0 or keeps growing, the target is not updated as it should be."
    ),
    Metric("train/metrics/alpha", "1", "SAC's temperature: the weight of entropy beside reward."),
    Metric(
        "train/metrics/action_saturation", "share", "Components of the policy's output that tanh holds at its bound.",
        0.0, 0.5, "known failure pattern: over half saturated, where performance is failing too",
    ),
    Metric("train/metrics/update_ratio", "1", "Gradient steps per env step in the epoch."),
    Metric("train/metrics/visited_share", "share", "Entries of the table that were ever visited."),
    # Exploration bonus
    Metric("train/metrics/bonus_mean", "1", "Mean exploration bonus of a step, before its coefficient."),
    Metric("train/metrics/bonus_max", "1", "Largest exploration bonus of a step, before its coefficient."),
    Metric("train/metrics/bonus_loss", "1", "Loss of the networks behind the bonus."),
    Metric("train/metrics/bonus_visited_share", "share", "Cells of the count table that were ever visited."),
    Metric("train/roll/ep_bonus_mean", "1", "Mean sum of the exploration bonus over the last 100 training episodes."),
    # The data an update learned from
    Metric("train/data/replay_size", "transitions", "Transitions that may be replayed."),
    Metric("train/data/replay_age", "steps", "Mean age, in env steps, of the transitions that were replayed."),
    Metric("train/data/obs_mean", "observation", "Mean of the observations, before normalisation."),
    Metric("train/data/obs_std", "observation", "Standard deviation of the observations, before normalisation."),
    Metric("train/data/obs_min", "observation", "Smallest observation component."),
    Metric("train/data/obs_max", "observation", "Largest observation component."),
    Metric(
        "train/data/obs_dead_dims", "dimensions", "Observation dimensions with variance below 1e-8 in the rollout.",
        0, 0, f"{INVARIANT} (a constant feature carries nothing)",
    ),
    Metric("train/data/reward_mean", "reward", "Mean reward of a step."),
    Metric("train/data/reward_std", "reward", "Standard deviation of the reward of a step."),
    Metric("train/data/reward_min", "reward", "Smallest reward of a step."),
    Metric("train/data/reward_max", "reward", "Largest reward of a step."),
    Metric("train/data/reward_zero_share", "share", "Steps with reward 0; near 1 the reward is sparse."),
    Metric("train/data/return_mean", "reward", "Mean of the value function's targets."),
    Metric("train/data/return_std", "reward", "Standard deviation of the value function's targets."),
    Metric("train/data/advantage_mean", "reward", "Mean advantage before normalisation."),
    Metric("train/data/advantage_std", "reward", "Standard deviation of the advantages before normalisation."),
    Metric("train/data/value_mean", "reward", "Mean predicted value."),
    Metric("train/data/value_std", "reward", "Standard deviation of the predicted values."),
    Metric("train/data/action_mean", "action", "Mean Box action, as the policy made it."),
    Metric("train/data/action_std", "action", "Standard deviation of the Box actions."),
    Metric(
        "train/data/action_saturation", "share", "Components of Box actions that are at a bound.", 0.0, 0.5,
        "known failure pattern: actions at the bound in over half, where performance is failing too",
    ),
    Metric(
        "train/data/action_top_share", "share", "Share of the most frequent action.", 0.0, 0.8,
        "known failure pattern: one action in 80 % or more together with low entropy, where performance is failing too",
    ),
    Metric(
        "train/data/action_effect", "share", "Largest share of a component's change that the action explains, "
        "beyond chance; near 0 the environment ignores what the agent does, or answers much later."
    ),
    Metric(
        "train/data/obs_noise_share", "share", "Variance of the observations that jumps back and forth from step to "
        "step, as measurement noise does, not motion; median over the components."
    ),
    Metric("train/data/valid_share", "share", "Rows of the rollout that are real transitions, not resets."),
    Metric("train/data/truncated_share", "share", "Episode ends that were truncations, not terminations."),
    Metric(
        "train/data/duplicate_envs", "environments", "Environments whose observations repeat another's exactly.", 0, 0,
        f"{INVARIANT} (environments share a seed)",
    ),
    # Time and memory
    Metric("train/sys/fps", "steps/s", "Environment steps per second in the last epoch."),
    Metric("train/sys/fps_total", "steps/s", "Environment steps per second since the start, everything included."),
    Metric("train/sys/time_rollout", "s", "Time spent collecting experience in the last epoch."),
    Metric("train/sys/time_update", "s", "Time spent learning in the last epoch."),
    Metric("train/sys/time_eval", "s", "Time spent evaluating in the last epoch."),
    Metric("train/sys/time_compile", "s", "Time spent compiling so far."),
    Metric("train/sys/rss_mb", "MB", "Largest resident memory of the training process so far."),
    # Counters
    Metric("train/cnt/env_steps", "steps", "Environment steps so far: the clock of a run that has an environment."),
    Metric("train/cnt/epochs", "epochs", "Epochs so far: rounds of n_steps of every environment."),
    Metric("train/cnt/episodes", "episodes", "Training episodes finished so far."),
    Metric("train/cnt/updates", "updates", "Gradient steps so far: the clock of a run without an environment."),
    # Evaluation
    Metric("val/roll/ep_rew_mean", "reward", "Mean return of an evaluation on fresh episodes."),
    Metric("val/roll/ep_rew_std", "reward", "Standard deviation of the returns of an evaluation."),
    Metric("val/roll/ep_rew_min", "reward", "Lowest return of an evaluation."),
    Metric("val/roll/ep_rew_max", "reward", "Highest return of an evaluation."),
    Metric("val/roll/ep_len_mean", "steps", "Mean episode length of an evaluation."),
    Metric("val/roll/episodes", "episodes", "Episodes of an evaluation."),
    Metric("test/roll/ep_rew_mean", "reward", "Mean return of the final evaluation, on the Gymnasium environment."),
    Metric("test/roll/ep_rew_std", "reward", "Standard deviation of the final evaluation's returns."),
    Metric("test/roll/ep_rew_min", "reward", "Lowest return of the final evaluation."),
    Metric("test/roll/ep_rew_max", "reward", "Highest return of the final evaluation."),
    Metric("test/roll/ep_len_mean", "steps", "Mean episode length of the final evaluation."),
    Metric("test/roll/episodes", "episodes", "Episodes of the final evaluation."),
)  # fmt: skip

FAMILIES: tuple[Metric, ...] = (
    Metric("train/hp/*", "1", "A hyperparameter as it was in force, its schedule applied."),
    Metric("train/data/action_share/*", "share", "Share of one discrete action among all actions of the rollout."),
)

_BY_NAME = {metric.name: metric for metric in METRICS}


def describe(name: str) -> Metric | None:
    """The entry of a metric, also of a member of a family; None if the catalogue has none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    for family in FAMILIES:
        if fnmatchcase(name, family.name) and name != family.name.removesuffix("*"):
            return replace(family, name=name)
    return None


def is_catalogued(name: str) -> bool:
    return describe(name) is not None
