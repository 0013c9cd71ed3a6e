"""The published list of PPO's implementation details, in our own words, and whether each matters for what is trained
here. The list: Huang et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization"."""

from __future__ import annotations

from typing import NamedTuple

from gymnasium_solver.verify.compliance.results import Finding, Presence, Weight

CORE, ATARI, CONTINUOUS, LSTM, MULTI = "core", "Atari", "continuous actions", "LSTM", "multi-discrete actions"

_WHAT_MATTERS = "Andrychowicz et al. 2021"
_IMPLEMENTATION = "Engstrom et al. 2020"
_RECURRENT = "only for tasks with hidden state; here frame_stack gives a policy its recent past"


class Detail(NamedTuple):
    name: str
    group: str
    what: str
    matters: Weight
    why: str


DETAILS = (
    Detail(
        "several environments side by side",
        CORE,
        "A fixed number of steps is taken in many environments at once, and episodes go on across rollouts.",
        "yes",
        "advantages of one long correlated stream vary more, and acting on one row at a time is slow",
    ),
    Detail(
        "orthogonal initial weights",
        CORE,
        "Weights start orthogonal with gains √2, 0.01 (policy's output) and 1 (value's output), biases at 0.",
        "yes",
        f"{_IMPLEMENTATION} found that the initialisation changes returns; {_WHAT_MATTERS} advise a small last layer; "
        "with zeros instead PPO learns nothing on CartPole (fault benchmark: -0.03 of 1.00)",
    ),
    Detail(
        "Adam's epsilon 1e-5",
        CORE,
        "Adam divides by the root of the second moment plus 1e-5, not its usual 1e-8.",
        "no",
        "it only damps steps of parameters whose gradient is below 1e-5",
    ),
    Detail(
        "learning rate falls to zero",
        CORE,
        "The learning rate goes down linearly over the training.",
        "sometimes",
        f"{_IMPLEMENTATION} found that it raises returns, {_WHAT_MATTERS} little; a constant rate is harmless on "
        "CartPole (fault benchmark: 1.00 of 1.00)",
    ),
    Detail(
        "generalised advantage estimation",
        CORE,
        "Advantages are exponentially weighted sums of one-step errors, and returns are advantages plus values.",
        "yes",
        f"{_WHAT_MATTERS} advise lambda near 0.9; one-step errors alone bring CartPole to 0.69 ± 0.29 of 1.00 (fault "
        "benchmark)",
    ),
    Detail(
        "shuffled minibatches",
        CORE,
        "Each epoch goes through all rows of the rollout once, in random minibatches.",
        "yes",
        "rows left out are wasted, and rows in order make correlated steps",
    ),
    Detail(
        "advantages normalised in each minibatch",
        CORE,
        "Advantages of a minibatch get mean 0 and deviation 1.",
        "sometimes",
        f"it makes the step independent of the reward's scale; {_WHAT_MATTERS} saw little effect, and CartPole is "
        "solved without it (fault benchmark: 1.00 of 1.00)",
    ),
    Detail(
        "clipped surrogate objective",
        CORE,
        "The policy's loss is the pessimistic one of the plain and the clipped ratio times advantage.",
        "yes",
        "it allows several epochs on the same rows; easy tasks do without (fault benchmark, CartPole: 1.00 of 1.00)",
    ),
    Detail(
        "value loss clipped",
        CORE,
        "The value may not move further than a bound from its old number, or counts the larger error.",
        "no",
        f"{_IMPLEMENTATION} found no gain from it, {_WHAT_MATTERS} that it hurts; it depends on the reward's scale",
    ),
    Detail(
        "one loss with an entropy bonus",
        CORE,
        "Policy loss, weighted value loss and negative weighted entropy are minimised together.",
        "sometimes",
        f"the bonus keeps discrete policies exploring; for continuous control {_WHAT_MATTERS} found no gain",
    ),
    Detail(
        "gradient clipped as a whole",
        CORE,
        "The norm of all gradients together is held to 0.5.",
        "sometimes",
        f"{_WHAT_MATTERS} saw a small gain; CartPole is solved without it (fault benchmark: 1.00 of 1.00)",
    ),
    Detail(
        "diagnostic numbers",
        CORE,
        "Losses, entropy, KL divergence and the share of clipped ratios are logged.",
        "yes",
        "gsolve diagnose lives on them",
    ),
    Detail(
        "shared or separate networks",
        CORE,
        "Policy and value can have a trunk each, or one for both.",
        "sometimes",
        f"{_WHAT_MATTERS} found separate ones better on four of five tasks; shared ones save time on images",
    ),
    Detail(
        "random number of no-ops at the start",
        ATARI,
        "An episode begins with up to 30 steps without action.",
        "sometimes",
        "only for Atari: it makes starts differ; sticky actions do so too (Machado et al. 2018)",
    ),
    Detail(
        "frames skipped, last two merged",
        ATARI,
        "An action is held for four frames, and the pixelwise maximum of the last two is seen.",
        "sometimes",
        "only for Atari images: sprites flicker, and four frames a decision are four times fewer decisions",
    ),
    Detail(
        "a life lost ends the episode",
        ATARI,
        "In training an episode ends with each life, while the game goes on.",
        "no",
        "only for Atari, and Machado et al. 2018 advise against it",
    ),
    Detail(
        "FIRE pressed at the start",
        ATARI,
        "Games that wait for FIRE get it after a reset.",
        "no",
        "only for some Atari games; FIRE is among the actions, so the policy can learn it",
    ),
    Detail(
        "small grey images",
        ATARI,
        "Frames are turned grey and made 84 × 84.",
        "sometimes",
        "only for Atari images: a fourteenth of the numbers",
    ),
    Detail(
        "rewards as -1, 0, 1",
        ATARI,
        "Only the sign of a reward counts.",
        "sometimes",
        "only for games with points of very different size; normalize_reward serves the same end",
    ),
    Detail(
        "frames stacked",
        ATARI,
        "The last four frames are seen together.",
        "sometimes",
        "only where one observation does not tell speed and direction",
    ),
    Detail(
        "one CNN for policy and value",
        ATARI,
        "Three convolutions and a layer of 512 units serve both heads.",
        "sometimes",
        "only for images, where the convolutions are most of the cost",
    ),
    Detail(
        "pixels scaled to [0, 1]",
        ATARI,
        "Bytes are divided by 255.",
        "yes",
        "for images: inputs up to 255 make the first steps far too large",
    ),
    Detail(
        "Gaussian policy",
        CONTINUOUS,
        "Continuous actions are drawn from normal distributions.",
        "yes",
        "for Box actions: log-probabilities have to be those of what was drawn",
    ),
    Detail(
        "deviation independent of the state",
        CONTINUOUS,
        "The log deviations are parameters of their own, beginning at 0.",
        "sometimes",
        "for Box actions: a deviation that is a function of the state is there too (use_sde)",
    ),
    Detail(
        "independent components",
        CONTINUOUS,
        "The log-probability of an action is the sum over its components.",
        "yes",
        "for Box actions with several components",
    ),
    Detail(
        "separate networks for policy and value",
        CONTINUOUS,
        "Two networks of two layers of 64 tanh units.",
        "sometimes",
        f"for Box actions {_WHAT_MATTERS} found it better on four of five tasks",
    ),
    Detail(
        "actions clipped for the environment only",
        CONTINUOUS,
        "The environment gets an action within its bounds; the drawn one is stored.",
        "yes",
        "for Box actions: learning from the clipped one would break the ratio",
    ),
    Detail(
        "observations normalised",
        CONTINUOUS,
        "Observations are centred and scaled by running statistics.",
        "sometimes",
        f"{_WHAT_MATTERS} found it crucial on most continuous tasks; CartPole and Acrobot do without (fault benchmark: "
        "1.00 of 1.00)",
    ),
    Detail(
        "normalised observations clipped",
        CONTINUOUS,
        "They are held within ±10.",
        "no",
        "ten deviations hardly occur",
    ),
    Detail(
        "rewards scaled",
        CONTINUOUS,
        "Rewards are divided by the running deviation of the discounted return.",
        "sometimes",
        f"{_IMPLEMENTATION} found that it raises returns; without it CliffWalking reaches 0.66 ± 0.57 of 1.00 (fault "
        "benchmark)",
    ),
    Detail("scaled rewards clipped", CONTINUOUS, "They are held within ±10.", "no", "ten deviations hardly occur"),
    Detail(
        "initial weights of the LSTM", LSTM, "Its weights start orthogonal, its biases at 0.", "sometimes", _RECURRENT
    ),
    Detail("memory starts at zero", LSTM, "The hidden state of a new training is all zeros.", "sometimes", _RECURRENT),
    Detail(
        "memory is cleared at endings", LSTM, "The hidden state is reset with its episode.", "sometimes", _RECURRENT
    ),
    Detail("minibatches keep time", LSTM, "Rows of an environment stay in order.", "sometimes", _RECURRENT),
    Detail(
        "memory is replayed in training",
        LSTM,
        "The hidden states are made again from the rollout's first.",
        "sometimes",
        _RECURRENT,
    ),
    Detail(
        "independent components",
        MULTI,
        "A multi-discrete action is several categories, whose log-probabilities and entropies add up.",
        "yes",
        "for MultiDiscrete actions",
    ),
)


def finding(number: int, status: Presence, evidence: str) -> Finding:
    """How the detail of this number (from 1) stands."""
    detail = DETAILS[number - 1]
    return Finding(number, detail.group, detail.name, detail.what, status, evidence, detail.matters, detail.why)
