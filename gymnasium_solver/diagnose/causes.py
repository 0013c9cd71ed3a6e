"""The catalogue of causes, one entry each: what it is, which evidence it makes likely, where it applies.

`evidence` maps the name of a question (diagnose/questions/) to the probability of a yes if this is the cause. What is
not named is as likely as in any failing run. These are first guesses; counts of measured runs (calibration.json)
correct them.
To add a cause: one entry here, its change in recommend/changes.py, and a case in benchmarks/faults/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gymnasium_solver.config.cards import find_card

Category = Literal["hyperparameter", "architecture", "environment", "data pipeline", "bug"]

ALWAYS, OFTEN, SOMETIMES, RARELY, NEVER = 0.97, 0.8, 0.5, 0.1, 0.03


@dataclass(frozen=True)
class Cause:
    id: str
    category: Category
    title: str  # what is wrong, as a sentence
    why: str  # how that leads to what is seen
    evidence: Mapping[str, float]
    about: tuple[str, ...] = ()  # traits of cards, any of which it needs: a family, a config field; empty: all
    prior: float = 1.0  # how often, relative to the others, before any evidence
    where: str = ""  # for a suspected bug: where to look, how to reproduce it, what to change
    needs: tuple[str, ...] = ()  # without one of these answered yes, it is not suspected
    references: tuple[str, ...] = field(default=())

    def applies_to(self, algorithm: str | None) -> bool:
        if not self.about or algorithm is None:
            return True
        card = find_card(algorithm)
        return card is not None and not card.traits.isdisjoint(self.about)


CAUSES: tuple[Cause, ...] = (
    # --- hyperparameters ---------------------------------------------------------------------------------------------
    Cause(
        "learning-rate-too-low", "hyperparameter", "the learning rate is too low",
        "each update moves the policy so little that the budget ends before it gets anywhere",
        {"policy_lr-low": 0.9, "targets-shortsighted": 0.4, "kl-tiny": OFTEN, "kl-none": SOMETIMES,
         "entropy-uniform": SOMETIMES, "update-tiny": OFTEN, "return-flat": 0.7, "clip-none": OFTEN,
         "kl-large": NEVER, "return-collapsed": RARELY,
         "gradient-far-above-clip": RARELY, "max_grad_norm-low": NEVER},
        prior=2.0,
    ),
    Cause(
        "learning-rate-too-high", "hyperparameter", "the learning rate is too high",
        "each update undoes what earlier ones learnt",
        {"policy_lr-high": 0.9, "kl-large": 0.7, "kl-ever-huge": 0.7, "update-large": 0.7, "return-unstable": 0.4,
         "return-collapsed": 0.4, "entropy-gone": SOMETIMES, "one-action": SOMETIMES, "units-dead": SOMETIMES,
         "kl-tiny": 0.3, "value-loss-grows": 0.4, "clip-high": SOMETIMES},
        prior=2.0,
    ),
    Cause(
        "learning-rate-decays-too-soon", "hyperparameter", "the learning rate decays to almost zero too soon",
        "most of the budget is spent at a learning rate too low to change anything",
        {"learning-rate-gone": ALWAYS, "update-tiny": OFTEN, "kl-tiny": OFTEN, "policy_lr-low": NEVER,
         "settings-usual": 0.9},
        needs=("learning-rate-gone",),
    ),
    Cause(
        "gradient-clip-too-tight", "hyperparameter", "gradient clipping removes almost all of the gradient",
        "every gradient is cut to a small fraction of its norm, which acts like a tiny learning rate",
        {"max_grad_norm-low": 0.95, "gradient-far-above-clip": 0.9, "clipped-always": ALWAYS, "kl-tiny": SOMETIMES,
         "update-tiny": SOMETIMES, "policy_lr-low": NEVER, "return-flat": SOMETIMES},
        ("max_grad_norm",),
    ),
    Cause(
        "clip-range-too-small", "hyperparameter", "the clip range is too small",
        "a sample stops contributing to the gradient as soon as the policy has moved slightly",
        {"clip_range-low": 0.95, "clip-high": 0.9, "kl-tiny": OFTEN, "update-tiny": SOMETIMES, "kl-large": NEVER,
         "policy_lr-low": NEVER},
        ("clip_range",),
    ),
    Cause(
        "entropy-bonus-too-high", "hyperparameter", "the entropy bonus outweighs the reward",
        "the policy gains more from being random than from being good",
        {"ent_coef-high": 0.95, "entropy-high": 0.9, "entropy-uniform": 0.7, "std-huge": SOMETIMES, "return-flat": 0.6,
         "policy_lr-low": NEVER, "kl-none": NEVER},
        ("on_policy",),
    ),
    Cause(
        "premature-entropy-collapse", "hyperparameter", "the policy became deterministic before it was good",
        "without exploration nothing better is ever tried",
        {"entropy-gone-early": 0.9, "entropy-gone": OFTEN, "one-action": SOMETIMES, "std-tiny": 0.3, "kl-tiny": OFTEN,
         "ent_coef-high": NEVER, "policy_lr-high": 0.2, "entropy-uniform": NEVER, "return-below-random": NEVER},
        ("on_policy",),
    ),
    Cause(
        "discount-too-low", "hyperparameter", "the discount factor is too low",
        "rewards more than about 1 / (1 − gamma) steps ahead hardly count",
        {"gamma-low": 0.97, "horizon-short": OFTEN, "targets-shortsighted": 0.9, "update-tiny": RARELY,
         "kl-tiny": RARELY},
        prior=1.0,
    ),
    Cause(
        "gae-lambda-unsuited", "hyperparameter", "GAE lambda relies on a value function that is not good yet",
        "advantages rest on one-step estimates of a poor critic",
        {"gae_lambda-low": 0.95, "critic-poor": SOMETIMES},
        ("gae_lambda",), prior=0.5,
    ),
    Cause(
        "too-many-update-epochs", "hyperparameter", "each rollout is reused for too many epochs",
        "the policy moves far from the one that collected the data",
        {"n_epochs-high": 0.95, "kl-large": OFTEN, "clip-high": OFTEN, "policy_lr-high": NEVER},
        ("n_epochs",), prior=0.5,
    ),
    Cause(
        "batch-too-small", "hyperparameter", "minibatches are too small",
        "gradients are mostly noise",
        {"minibatch-low": 0.95, "noise-scale-above-batch": 0.9, "kl-large": SOMETIMES, "return-unstable": SOMETIMES,
         "clip-high": SOMETIMES, "policy_lr-high": NEVER},
        ("batch_size",), prior=0.5,
    ),
    Cause(
        "batch-too-large", "hyperparameter", "minibatches are too large for the number of updates",
        "there are few gradient steps, each more precise than it needs to be",
        {"minibatch-high": 0.9, "noise-scale-below-batch": 0.8, "updates-few": OFTEN, "kl-tiny": SOMETIMES,
         "improving-at-end": SOMETIMES},
        ("batch_size",), prior=0.5,
    ),
    Cause(
        "rollout-too-short", "hyperparameter", "rollouts are too short",
        "an update sees too little of an episode to tell good actions from bad ones",
        {"rollout-low": 0.95, "critic-poor": SOMETIMES, "return-unstable": SOMETIMES},
        ("on_policy",), prior=0.5,
    ),
    Cause(
        "rollout-too-long", "hyperparameter", "rollouts are too long for the budget",
        "the policy is updated only a few times",
        {"updates-low": 0.95, "rollout-high": SOMETIMES, "updates-few": SOMETIMES, "improving-at-end": SOMETIMES,
         "budget-small": RARELY},
        ("on_policy",), prior=0.7,
    ),
    Cause(
        "too-few-updates", "hyperparameter", "there are too few gradient steps per environment step",
        "the data is there, but little is learnt from it",
        {"update_to_data-low": 0.95, "updates-few": 0.7, "improving-at-end": SOMETIMES, "update-tiny": SOMETIMES,
         "learning_starts_share-high": NEVER, "policy_lr-low": NEVER},
        ("update_to_data", "n_epochs"), prior=0.7,
    ),
    Cause(
        "learning-starts-too-late", "hyperparameter", "learning starts too late",
        "most of the budget is spent on random actions before the first update",
        {"learning_starts_share-high": ALWAYS, "updates-begin-late": 0.9, "updates-few": SOMETIMES},
        ("learning_starts",), needs=("learning_starts_share-high", "updates-begin-late"),
    ),
    Cause(
        "exploration-too-high", "hyperparameter", "actions stay mostly random until the end",
        "training never visits the states that the learnt policy would reach",
        {"epsilon-stays-high": ALWAYS, "epsilon_late-high": 0.95, "evaluation-above-training": SOMETIMES,
         "noise_std-high": 0.9, "std-huge": 0.9, "log_std_init-high": 0.9, "return-flat": SOMETIMES},
        ("on_policy", "epsilon", "noise_std"),
        needs=("epsilon-stays-high", "epsilon_late-high", "noise_std-high", "std-huge", "log_std_init-high"),
    ),
    Cause(
        "exploration-too-low", "hyperparameter", "there is too little exploration",
        "actions that are never tried are never learnt",
        {"epsilon-none": 0.9, "epsilon_late-low": OFTEN, "noise_std-low": 0.9, "one-action": SOMETIMES,
         "alpha-gone": SOMETIMES, "ent_coef-low": OFTEN, "returns-equal": 0.3, "reward-sparse": 0.3,
         "std-tiny": 0.6, "log_std_init-low": 0.9},
        ("on_policy", "replay", "tabular"),
        needs=("epsilon-none", "epsilon_late-low", "noise_std-low", "ent_coef-low", "alpha-gone", "log_std_init-low"),
    ),
    Cause(
        "target-network-stale", "hyperparameter", "the target network is hardly ever updated",
        "values are learnt from targets that hardly change after initialisation",
        {"target-frozen": 0.95, "target_share-high": 0.4, "tau-low": 0.4, "updates-few": RARELY,
         "q-beyond-bound": NEVER},
        ("tau",), needs=("target-frozen", "target_share-high", "tau-low"),
        references=("vwxyzjn/cleanrl PR#323",),
    ),
    Cause(
        "target-network-missing", "hyperparameter", "the target network follows the online one too closely",
        "values chase their own estimates, and drift or diverge",
        {"target-follows": 0.7, "tau-high": 0.9, "target_update_interval-low": 0.9, "q-beyond-bound": 0.3,
         "q-grows": 0.4, "return-unstable": 0.4, "td-error-grows": 0.3},
        ("tau",), needs=("target-follows", "tau-high", "target_update_interval-low"),
    ),
    Cause(
        "temperature-too-high", "hyperparameter", "the temperature makes entropy worth more than reward",
        "the policy stays random because entropy pays more",
        {"ent_coef-high": 0.9, "alpha-high": 0.9, "alpha-grows": SOMETIMES, "alpha-runs-away": 0.4,
         "q-beyond-bound": 0.3, "return-flat": SOMETIMES},
        ("target_entropy",), needs=("ent_coef-high", "alpha-high", "alpha-grows"),
        references=("rail-berkeley/softlearning#136",),
    ),
    Cause(
        "value-loss-swamps-policy", "hyperparameter", "the value loss swamps the policy loss in the shared trunk",
        "the shared layers serve the value function only",
        {"value-swamps-policy": 0.9, "vf_coef-high": OFTEN, "clipped-always": OFTEN, "kl-tiny": SOMETIMES},
        ("gae_lambda",), needs=("value-swamps-policy", "vf_coef-high"),
    ),
    Cause(
        "value-function-underweighted", "hyperparameter", "the value function hardly learns",
        "advantages rest on a value function that explains nothing",
        {"vf_coef-low": 0.95, "critic-poor": 0.9},
        ("vf_coef",), needs=("vf_coef-low",),
    ),
    Cause(
        "value-clip-too-tight", "hyperparameter", "value clipping holds the value function back",
        "an update may move the value function by less than a twentieth of the spread of returns",
        {"value-clip-binds": ALWAYS, "critic-poor": OFTEN},
        ("clip_range_vf",), needs=("value-clip-binds",), references=("ray-project/ray PR#2921",),
    ),
    Cause(
        "training-too-short", "hyperparameter", "the budget is too small",
        "training ends before the threshold can be reached; nothing else is wrong",
        {"improving-at-end": 0.8, "budget-small": 0.8, "settings-usual": 0.8, "return-flat": RARELY,
         "return-collapsed": NEVER, "kl-none": NEVER,
         "entropy-gone-early": RARELY, "return-below-random": NEVER, "policy_lr-low": NEVER, "policy_lr-high": NEVER,
         "update-tiny": RARELY},
        prior=1.5, needs=("improving-at-end", "budget-small"),
    ),
    Cause(
        "replay-too-small", "hyperparameter", "the replay buffer is too small",
        "learning sees only the newest experience; the rest is overwritten too soon",
        {"buffer_size-low": ALWAYS, "return-unstable": SOMETIMES},
        ("buffer_size",), needs=("buffer_size-low",), prior=0.7,
    ),
    Cause(
        "plasticity-loss", "hyperparameter", "the networks lose the ability to learn",
        "many updates on the same data silence hidden units",
        {"update_to_data-high": 0.9, "units-dying": 0.7, "units-dead": SOMETIMES, "return-collapsed": 0.4},
        ("update_to_data",), needs=("units-dying", "update_to_data-high"), prior=0.5,
        references=("https://arxiv.org/abs/2205.07802",),
    ),
    Cause(
        "target-kl-too-tight", "hyperparameter", "target KL ends almost every update right away",
        "most of the planned minibatch steps are skipped",
        {"target_kl-low": 0.95, "updates-cut-short": 0.9, "kl-tiny": OFTEN},
        ("target_kl",), needs=("updates-cut-short", "target_kl-low"),
    ),
    Cause(
        "reinforce-variance", "hyperparameter", "returns without a baseline make gradients noisy",
        "the size of the return, not the merit of the action, determines the step",
        {"no-baseline": 0.95, "return-unstable": SOMETIMES, "one-action": 0.3, "entropy-gone-early": 0.3},
        ("baseline",), needs=("no-baseline",),
    ),
    Cause(
        "q-overestimation", "hyperparameter", "action values are overestimated",
        "the maximum over noisy estimates is taken as the true value",
        {"not-double": 0.9, "q-grows": SOMETIMES, "values-beyond-achievable": SOMETIMES, "q-beyond-bound": 0.3},
        ("double",), needs=("q-grows", "values-beyond-achievable", "q-beyond-bound"), prior=0.5,
    ),
    # --- architecture -------------------------------------------------------------------------------------------------
    Cause(
        "network-too-small", "architecture", "the network is too small",
        "it cannot express a good policy or value function",
        {"width-low": ALWAYS, "critic-poor": 0.4},
        ("hidden_dims",), needs=("width-low",), prior=0.7,
    ),
    Cause(
        "images-without-cnn", "architecture", "images go into a network without convolutions",
        "every pixel is a separate input, so nothing learnt at one position helps at another",
        {"images-into-mlp": ALWAYS},
        ("network",), needs=("images-into-mlp",),
    ),
    Cause(
        "dead-units", "architecture", "most hidden units are silent",
        "a silent unit gets no gradient and stays silent",
        {"units-dead": 0.95, "policy_lr-high": 0.3, "observations-large": 0.3},
        ("hidden_dims",), needs=("units-dead",), prior=0.4,
    ),
    # --- environment --------------------------------------------------------------------------------------------------
    Cause(
        "constant-observation", "environment", "the agent is blind: its observation never changes",
        "every state looks the same, so no policy can tell them apart",
        {"settings-usual": 0.95, "observations-constant": ALWAYS},
        needs=("observations-constant",),
        where="the environment's observation, or a wrapper around it: print obs over a few steps of random actions",
    ),
    Cause(
        "partial-observability", "environment", "part of the observation carries no information",
        "what the agent would need to see (a velocity, say) is masked or constant",
        {"settings-usual": 0.95, "observation-part-constant": 0.95, "critic-poor": 0.3, "observations-tiny": 0.05},
        needs=("observation-part-constant",),
        where="the environment's observation, or a wrapper: print the variance of each component over random steps",
    ),
    Cause(
        "observation-scale", "environment", "observations are on a scale that networks learn badly from",
        "large inputs saturate the units, tiny ones barely activate them",
        {"observations-large": 0.7, "observations-tiny": 0.5, "observations-not-normalized": ALWAYS,
         "settings-usual": 0.9},
        ("hidden_dims",), needs=("observations-large", "observations-tiny"),
    ),
    Cause(
        "observation-noise", "environment", "observations are mostly noise",
        "what the agent sees says little about the state",
        {"settings-usual": 0.95, "observations-noisy": 0.95, "critic-poor": SOMETIMES},
        needs=("observations-noisy",),
        where="the environment or a wrapper: step two copies with the same seed and actions and compare",
    ),
    Cause(
        "reward-scale", "environment", "rewards are on a scale that value functions learn badly from",
        "value errors of that size swamp every other part of the loss",
        {"rewards-large": 0.9, "targets-large": OFTEN, "value-loss-huge": OFTEN, "rewards-not-normalized": ALWAYS,
         "clipped-always": OFTEN, "gradient-explodes": 0.6, "rewards-tiny": 0.1},
        ("hidden_dims",), needs=("rewards-large", "rewards-tiny"),
    ),
    Cause(
        "constant-reward", "environment", "the reward is the same whatever the agent does",
        "nothing distinguishes a good action from a bad one",
        {"settings-usual": 0.95, "no-reward": 0.7, "returns-equal": 0.9, "goal-never-reached": 0.05},
        needs=("no-reward",),
        where="the environment's reward, or a wrapper: print rewards over a few episodes of random actions",
    ),
    Cause(
        "reward-sign-flipped", "environment", "the reward has the wrong sign",
        "the agent learns to do the opposite of what is wanted",
        {"settings-usual": 0.95, "rewards-oppose-threshold": 0.9, "return-below-random": 0.5},
        needs=("rewards-oppose-threshold",),
        where="the environment's reward, or a wrapper: the sign of the reward against that of the threshold",
    ),
    Cause(
        "sparse-reward", "environment", "rewards are too rare to be found by random exploration",
        "without a first success there is nothing to learn from",
        {"reward-sparse": 0.7, "goal-never-reached": 0.5, "return-flat": OFTEN, "no-reward": 0.6, "returns-equal": 0.5},
        needs=("reward-sparse", "no-reward", "goal-never-reached"), prior=0.8,
    ),
    Cause(
        "actions-have-no-effect", "environment", "the environment ignores the agent's actions",
        "what happens does not depend on what the agent does",
        {"settings-usual": 0.95, "actions-without-effect": 0.95, "entropy-high": 0.6},
        needs=("actions-without-effect",),
        where="the environment's step, or a wrapper: step two copies from one seed with different actions and compare",
    ),
    Cause(
        "action-scaling", "environment", "Box actions are not scaled to their bounds",
        "the policy's actions cover a small part of what the environment accepts, or are cut off",
        {"actions-not-rescaled": 0.95, "actions-saturated": SOMETIMES},
        needs=("actions-not-rescaled",), references=("hill-a/stable-baselines#637",),
    ),
    Cause(
        "action-saturation", "environment", "the policy is stuck at the bounds of its actions",
        "tanh is flat there, so no gradient leads back",
        {"actions-saturated": 0.95, "policy_lr-high": 0.3, "observations-large": 0.3},
        ("squashed",), needs=("actions-saturated",), prior=0.5,
    ),
    Cause(
        "duplicate-seeds", "environment", "all environments run the same episode",
        "the batch holds many copies of the same experience",
        {"settings-usual": 0.95, "streams-identical": ALWAYS},
        needs=("streams-identical",),
        where="how the environments are seeded: each needs a seed of its own (seed + index)",
        references=("hill-a/stable-baselines#675",),
    ),
    Cause(
        "time-limit-too-short", "environment", "episodes are cut off before the threshold can be reached",
        "the time limit in the configuration ends them",
        {"time-limit-set": ALWAYS},
        needs=("time-limit-set",), prior=0.7,
    ),
    Cause(
        "environment-error", "environment", "the run ended with an error",
        "an exception, most often from the environment, ended it",
        {"environment-failed": ALWAYS, "traceback-logged": OFTEN},
        needs=("environment-failed",), where="the error in the summary, and run.log around it",
    ),
    # --- data pipeline ------------------------------------------------------------------------------------------------
    Cause(
        "slow-environment", "data pipeline", "stepping the environments takes most of the time",
        "the learner waits for experience",
        {"stepping-dominates": ALWAYS}, needs=("stepping-dominates",), prior=0.1,
    ),
    Cause(
        "evaluation-dominates", "data pipeline", "evaluations take most of the time",
        "training waits for its own evaluations",
        {"evaluation-dominates": ALWAYS}, needs=("evaluation-dominates",), prior=0.1,
    ),
    Cause(
        "normalizer-mismatch", "data pipeline", "evaluation sees different observations from training",
        "the normaliser's statistics are not saved, not loaded or not frozen",
        {"training-above-evaluation": ALWAYS, "observations-not-normalized": NEVER},
        needs=("training-above-evaluation",), prior=0.5,
        references=("isaac-sim/IsaacLab#2635",),
        where="where observation statistics are saved, loaded and frozen for evaluation",
    ),
    # --- bugs ---------------------------------------------------------------------------------------------------------
    Cause(
        "old-log-prob-wrong", "bug", "the old log-probabilities are not those of the policy that acted",
        "the ratio must be 1 before the first step of an update, and is not",
        {"settings-usual": 0.95, "ratio-off-one": 0.98}, ("clip_range",), needs=("ratio-off-one",),
        where="where log-probabilities are stored at acting time; also a normaliser that moved in between, or a stored "
        "action that is not the executed one. Reproduce: one update, print the ratio of the first minibatch",
    ),
    Cause(
        "advantage-sign-flipped", "bug", "the policy is pushed away from good actions",
        "it becomes more certain and worse at the same time, with sound settings",
        {"settings-usual": 0.95, "return-below-random": 0.9, "moves-without-learning": 0.6,
         "entropy-uniform": RARELY, "entropy-gone": 0.6, "policy_lr-high": NEVER,
         "policy_lr-low": NEVER, "one-action": 0.4, "rewards-oppose-threshold": NEVER, "ratio-off-one": RARELY,
         "improving-at-end": NEVER},
        needs=("return-below-random",),
        where="the sign of the policy loss, and of the advantage (return − value). Reproduce: a probe environment with "
        "one rewarded action; its probability must rise",
        prior=0.7,
    ),
    Cause(
        "done-not-masked", "bug", "values are bootstrapped past the end of an episode",
        "the value of the state after a terminal step is added where it must be 0",
        {"settings-usual": 0.95, "values-beyond-achievable": 0.9, "q-beyond-bound": 0.3, "policy_lr-high": NEVER,
         "q-grows": 0.5,
         "target-follows": RARELY, "tau-high": NEVER, "target_update_interval-low": NEVER},
        needs=("values-beyond-achievable", "q-beyond-bound"),
        where="the (1 − terminated) factor of the bootstrap target or of GAE. Reproduce: a probe environment of two "
        "steps with known values",
        prior=0.8, references=("vwxyzjn/cleanrl#198",),
    ),
    Cause(
        "wrong-action-value", "bug", "learning credits other actions than the one taken",
        "the values or probabilities of actions are not learnt from their own outcomes",
        {"return-flat": 0.9, "moves-without-learning": 0.9, "settings-usual": 0.95, "entropy-uniform": 0.3,
         "policy_lr-low": NEVER, "policy_lr-high": NEVER, "epsilon-stays-high": NEVER,
         "epsilon-none": NEVER, "target-frozen": RARELY, "return-below-random": RARELY, "entropy-gone": RARELY,
         "values-beyond-achievable": 0.05},
        prior=0.2,
        where="how actions are stored and looked up in the loss: log-probability or Q(s, a) of the stored action, row "
        "by row. Reproduce: a probe environment with two actions of different reward",
    ),
    Cause(
        "zero-initialization", "bug", "all hidden units are equal",
        "equal units get equal gradients and stay equal, so each layer acts like a single unit",
        {"settings-usual": 0.95, "units-identical": 0.95, "trunk-without-gradient": 0.6},
        ("hidden_dims",), needs=("units-identical", "trunk-without-gradient"),
        where="the initialisation of the weights: they must differ from each other",
    ),
    Cause(
        "kl-estimator-wrong", "bug", "the estimate of the KL divergence is negative",
        "a divergence never is: the estimator or the action mask is wrong",
        {"kl-negative": ALWAYS}, ("target_kl",), needs=("kl-negative",), prior=0.5,
        where="the KL estimator (mean of exp(x) − 1 − x for the log ratio x) and masked actions in log-probabilities",
    ),
    Cause(
        "non-finite-values", "bug", "a number became NaN or infinite",
        "from there on nothing can be learnt",
        {"non-finite": 0.95, "checkpoint-non-finite": 0.7},
        needs=("non-finite", "checkpoint-non-finite"), prior=1.5,
        where="the first metric that is not finite, and the step where that starts",
        references=("DLR-RM/stable-baselines3 PR#1028",),
    ),
    Cause(
        "dead-surrogate", "bug", "the policy gets no gradient at all",
        "either all advantages are 0, or the learning rate is",
        {"settings-usual": 0.95, "surrogate-dead": ALWAYS, "kl-none": ALWAYS},
        ("on_policy",), needs=("surrogate-dead",),
        where="the standard deviation of the advantages before normalisation, and the learning rate in force",
    ),
    Cause(
        "truncation-as-termination", "bug", "a time limit is treated as the end of the task",
        "the value of the next state is set to 0 although only the time ran out",
        {"settings-usual": 0.95, "equal-lengths-not-truncated": ALWAYS}, needs=("equal-lengths-not-truncated",),
        where="where the environment (or a wrapper) sets terminated and truncated at its time limit",
        references=("vwxyzjn/cleanrl#198",),
    ),
    Cause(
        "schedule-not-in-force", "bug", "a value in force does not follow its configured schedule",
        "the run did not train with the values in its config",
        {"schedule-off": ALWAYS}, needs=("schedule-off",), prior=0.5,
        where="where the schedule is evaluated: its position in training, and which value reaches the optimiser",
    ),
    Cause(
        "q-value-divergence", "bug", "action values diverge",
        "they exceed any return that the rewards can add up to",
        {"q-beyond-bound": ALWAYS, "q-grows": OFTEN, "td-error-grows": OFTEN},
        ("replay",), needs=("q-beyond-bound",), prior=0.4,
        where="the target network, the masking of terminal steps and the reward scale, in that order",
    ),
)  # fmt: skip

BY_ID: Mapping[str, Cause] = {cause.id: cause for cause in CAUSES}
EFFICIENCY = ("slow-environment", "evaluation-dominates")  # of use in any run; never why one fails
