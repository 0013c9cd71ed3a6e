"""The clipped surrogate step by step, each step right or wrong in known ways."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.verify.compliance.mistakes import SIGN_MEASURED, Mistake
from gymnasium_solver.verify.compliance.samples import LossBatch

Array = np.ndarray
Steps = dict[str, str]


def surrogate(steps: Steps, batch: LossBatch, log_prob: Array) -> float:
    """The loss with some steps done otherwise. Only `log_prob` is live: derivatives are taken by it, and what a wrong
    variant detaches is taken from the batch."""
    ratio = _ratio(steps.get("ratio", ""), batch, log_prob)
    advantages = _advantages(steps.get("advantage", ""), batch.advantages)
    reduce = steps.get("reduce", "")
    if reduce == "outer":
        ratio, advantages = ratio[:, None], advantages[None, :]
    elif reduce == "means first":
        ratio, advantages = ratio.mean(keepdims=True), advantages.mean(keepdims=True)
    kept = _kept(steps, ratio, advantages, batch.clip_range)
    total = kept.sum() if reduce == "sum" else kept.mean()
    return float(total if steps.get("sign") == "objective" else -total)


def surrogate_gradient(steps: Steps, batch: LossBatch) -> Array:
    """Central differences; the batches keep far from kinks."""
    step, gradient = 1e-6, np.zeros_like(batch.log_prob)
    for i in range(len(gradient)):
        up, down = batch.log_prob.copy(), batch.log_prob.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (surrogate(steps, batch, up) - surrogate(steps, batch, down)) / (2 * step)
    return gradient


def _ratio(kind: str, batch: LossBatch, log_prob: Array) -> Array:
    log_ratio = log_prob - batch.old_log_prob
    return {
        "": lambda: np.exp(log_ratio),
        "inverted": lambda: np.exp(-log_ratio),
        "difference": lambda: log_ratio,
        "quotient": lambda: log_prob / batch.old_log_prob,
        "recomputed": lambda: np.exp(log_prob - batch.log_prob),
        "log-prob": lambda: log_prob,
        "detached": lambda: batch.ratio,
    }[kind]()


def _advantages(kind: str, advantages: Array) -> Array:
    centred, spread = advantages - advantages.mean(), advantages.std()
    return {
        "": lambda: advantages,
        "negated": lambda: -advantages,
        "standardised": lambda: centred / (spread + 1e-8),
        "standardised, ddof 1": lambda: centred / (advantages.std(ddof=1) + 1e-8),
        "not centred": lambda: advantages / (spread + 1e-8),
        "by variance": lambda: centred / (advantages.var() + 1e-8),
        "only centred": lambda: centred,
        "absolute": lambda: np.abs(advantages),
    }[kind]()


def _kept(steps: Steps, ratio: Array, advantages: Array, clip_range: float) -> Array:
    low, high = 1 - clip_range, 1 + clip_range
    plain = ratio * advantages
    match steps.get("clip", ""):
        case "upper":
            clipped = np.minimum(ratio, high) * advantages
        case "lower":
            clipped = np.maximum(ratio, low) * advantages
        case "around zero":
            clipped = np.clip(ratio, -clip_range, clip_range) * advantages
        case "log-ratio":
            clipped = np.exp(np.clip(np.log(np.maximum(ratio, 1e-9)), -clip_range, clip_range)) * advantages
        case "product":
            clipped = np.clip(plain, low, high)
        case "advantage missing":
            clipped = np.clip(ratio, low, high) * np.ones_like(advantages)
        case _:
            clipped = np.clip(ratio, low, high) * advantages
    match steps.get("choose", ""):
        case "max":
            return np.maximum(plain, clipped)
        case "clipped":
            return clipped
        case "plain":
            return plain
        case _:
            return np.minimum(plain, clipped)


MISTAKES = (
    Mistake(
        "sum-reduction",
        {"reduce": "sum"},
        "adds up the rows where the reference takes their mean",
        "right if you meant it: the step then grows with the batch, so divide by its size or lower the learning rate",
        harmless=True,
    ),
    Mistake(
        "objective",
        {"sign": "objective"},
        "returns the objective, not the loss: it has to be maximised",
        "negate it before a minimiser gets it",
        harmless=True,
    ),
    Mistake(
        "normalised-inside",
        {"advantage": "standardised"},
        "normalises the advantages itself (population deviation)",
        "do not normalise them a second time outside",
        harmless=True,
    ),
    Mistake(
        "normalised-inside",
        {"advantage": "standardised, ddof 1"},
        "normalises the advantages itself (sample deviation, ddof 1)",
        "do not normalise them a second time outside; a batch of one row becomes NaN",
        harmless=True,
    ),
    Mistake(
        "advantage-sign",
        {"advantage": "negated"},
        "the sign of the advantages is flipped: good actions become less likely",
        "use advantages as they are, and negate the mean of the minimum once",
        measured=SIGN_MEASURED,
    ),
    Mistake(
        "max-for-min",
        {"choose": "max"},
        "min is replaced by max (or max by min of the negated terms): the bound is optimistic, and the ratio runs away",
        "loss = -mean(min(ratio * adv, clip(ratio) * adv)), or mean(max(-ratio * adv, -clip(ratio) * adv))",
    ),
    Mistake(
        "ratio-inverted",
        {"ratio": "inverted"},
        "the ratio is inverted: exp(old - new)",
        "ratio = exp(log_prob - old_log_prob)",
    ),
    Mistake(
        "ratio-not-exponentiated",
        {"ratio": "difference"},
        "the ratio is the difference of log-probabilities: the exp is missing",
        "ratio = exp(log_prob - old_log_prob)",
    ),
    Mistake(
        "ratio-of-log-probs",
        {"ratio": "quotient"},
        "log-probabilities are divided as if they were probabilities",
        "ratio = exp(log_prob - old_log_prob)",
    ),
    Mistake(
        "old-log-prob-recomputed",
        {"ratio": "recomputed"},
        "the old log-probabilities are not used: the ratio is 1 always, as if they were recomputed from the new policy",
        "store log_prob when the action is taken, and pass that as old_log_prob",
    ),
    Mistake(
        "no-ratio",
        {"ratio": "log-prob", "choose": "plain"},
        "this is the plain policy gradient: log_prob * advantage, without ratio and clip",
        "use ratio = exp(log_prob - old_log_prob) in place of log_prob, and clip it",
    ),
    Mistake(
        "log-prob-detached",
        {"ratio": "detached"},
        "no gradient reaches log_prob: it is detached, so the policy never learns",
        "detach old_log_prob and the advantages, not log_prob",
    ),
    Mistake(
        "not-clipped",
        {"choose": "plain"},
        "nothing is clipped: ratio * advantage alone",
        "take the minimum with clip(ratio, 1 - eps, 1 + eps) * advantage",
        measured="the fault benchmark found it harmless on CartPole (1.00 of 1.00); many epochs need it",
    ),
    Mistake(
        "min-missing",
        {"choose": "clipped"},
        "only the clipped term is used: a ratio that moved the wrong way gets no gradient back",
        "loss = -mean(min(ratio * adv, clip(ratio) * adv))",
    ),
    Mistake(
        "clipped-around-zero",
        {"clip": "around zero"},
        "the ratio is clipped to [-eps, eps]",
        "clip it to [1 - eps, 1 + eps]",
    ),
    Mistake(
        "clipped-above-only",
        {"clip": "upper"},
        "the ratio is clipped from above only",
        "clip it to [1 - eps, 1 + eps]: the lower bound holds where the advantage is negative",
    ),
    Mistake(
        "clipped-below-only",
        {"clip": "lower"},
        "the ratio is clipped from below only",
        "clip it to [1 - eps, 1 + eps]: the upper bound holds where the advantage is positive",
    ),
    Mistake(
        "log-ratio-clipped",
        {"clip": "log-ratio"},
        "the logarithm of the ratio is clipped: the range is [exp(-eps), exp(eps)]",
        "take the exponential first, then clip to [1 - eps, 1 + eps]",
    ),
    Mistake(
        "product-clipped",
        {"clip": "product"},
        "the product of ratio and advantage is clipped, not the ratio",
        "clip the ratio, then multiply by the advantage",
    ),
    Mistake(
        "advantage-missing-in-clipped-term",
        {"clip": "advantage missing"},
        "the clipped term is not multiplied by the advantage",
        "clip(ratio, 1 - eps, 1 + eps) * adv",
    ),
    Mistake(
        "broadcast",
        {"reduce": "outer"},
        "[B] against [B, 1]: every ratio is multiplied by every advantage, and the mean is over B × B",
        "give both the same shape (squeeze the last axis), and assert it",
    ),
    Mistake(
        "means-before-product",
        {"reduce": "means first"},
        "ratio and advantages are averaged before they are multiplied",
        "multiply row by row, then take the mean",
    ),
    Mistake(
        "advantages-not-centred",
        {"advantage": "not centred"},
        "the advantages are divided by their deviation without subtracting their mean",
        "(adv - adv.mean()) / (adv.std() + 1e-8)",
    ),
    Mistake(
        "advantages-by-variance",
        {"advantage": "by variance"},
        "the advantages are divided by their variance, not by their deviation",
        "(adv - adv.mean()) / (adv.std() + 1e-8)",
    ),
    Mistake(
        "advantages-only-centred",
        {"advantage": "only centred"},
        "the advantages are centred but not scaled",
        "(adv - adv.mean()) / (adv.std() + 1e-8), or leave them as they are",
    ),
    Mistake(
        "absolute-advantages",
        {"advantage": "absolute"},
        "the advantages lose their sign: every action becomes more likely",
        "use advantages as they are",
    ),
)
