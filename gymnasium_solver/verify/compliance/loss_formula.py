"""The clipped surrogate in NumPy, step by step, and the known ways to get a step wrong."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.verify.compliance.functions import differences
from gymnasium_solver.verify.compliance.mistakes import Changes, catalogue
from gymnasium_solver.verify.compliance.samples import LossBatch

Array = np.ndarray

# Derivatives are taken by `log_prob` (`lp`): what a wrong variant detaches, it takes from the batch.
RIGHT: Changes = {
    "ratio": lambda batch, lp: np.exp(lp - batch.old_log_prob),
    "advantage": lambda a: a,
    "pair": lambda ratio, a: (ratio, a),
    "clip": lambda ratio, a, eps: np.clip(ratio, 1 - eps, 1 + eps) * a,
    "choose": np.minimum,
    "reduce": np.mean,
    "sign": lambda objective: -objective,
}


def surrogate(changes: Changes, batch: LossBatch, log_prob: Array | None = None) -> float:
    """https://arxiv.org/abs/1707.06347 equation 7, negated, with some steps done otherwise."""
    do = {**RIGHT, **changes}
    ratio = do["ratio"](batch, batch.log_prob if log_prob is None else log_prob)
    ratio, advantages = do["pair"](ratio, do["advantage"](batch.advantages))
    kept = do["choose"](ratio * advantages, do["clip"](ratio, advantages, batch.clip_range))
    return float(do["sign"](do["reduce"](kept)))


def surrogate_gradient(changes: Changes, batch: LossBatch) -> Array:
    return differences(lambda log_prob: surrogate(changes, batch, log_prob), batch.log_prob, step=1e-6)


def standardized(x: Array, ddof: int = 0) -> Array:
    return (x - x.mean()) / (x.std(ddof=ddof) + 1e-8)


OBJECTIVE: Changes = {"sign": lambda objective: objective}
MISTAKES = catalogue(
    [
        ("sum-reduction", {"reduce": np.sum}),
        ("objective", OBJECTIVE),
        ("normalised-inside", {"advantage": standardized}),
        ("normalised-inside", {"advantage": lambda a: standardized(a, ddof=1)}),
        ("advantage-sign", {"advantage": lambda a: -a}),
        ("max-for-min", {"choose": np.maximum}),
        ("ratio-inverted", {"ratio": lambda batch, lp: np.exp(batch.old_log_prob - lp)}),
        ("ratio-not-exponentiated", {"ratio": lambda batch, lp: lp - batch.old_log_prob}),
        ("ratio-of-log-probs", {"ratio": lambda batch, lp: lp / batch.old_log_prob}),
        ("old-log-prob-recomputed", {"ratio": lambda batch, lp: np.exp(lp - batch.log_prob)}),
        ("no-ratio", {"ratio": lambda batch, lp: lp, "choose": lambda plain, clipped: plain}),
        ("log-prob-detached", {"ratio": lambda batch, lp: batch.ratio}),
        ("not-clipped", {"choose": lambda plain, clipped: plain}),
        ("min-missing", {"choose": lambda plain, clipped: clipped}),
        ("clipped-around-zero", {"clip": lambda ratio, a, eps: np.clip(ratio, -eps, eps) * a}),
        ("clipped-above-only", {"clip": lambda ratio, a, eps: np.minimum(ratio, 1 + eps) * a}),
        ("clipped-below-only", {"clip": lambda ratio, a, eps: np.maximum(ratio, 1 - eps) * a}),
        ("log-ratio-clipped", {"clip": lambda ratio, a, eps: np.clip(ratio, np.exp(-eps), np.exp(eps)) * a}),
        ("product-clipped", {"clip": lambda ratio, a, eps: np.clip(ratio * a, 1 - eps, 1 + eps)}),
        (
            "advantage-missing-in-clipped-term",
            {"clip": lambda ratio, a, eps: np.clip(ratio, 1 - eps, 1 + eps) * np.ones_like(a)},
        ),
        ("broadcast", {"pair": lambda ratio, a: (ratio[:, None], a[None, :])}),
        ("means-before-product", {"pair": lambda ratio, a: (ratio.mean(keepdims=True), a.mean(keepdims=True))}),
        ("advantages-not-centred", {"advantage": lambda a: a / (a.std() + 1e-8)}),
        ("advantages-by-variance", {"advantage": lambda a: (a - a.mean()) / (a.var() + 1e-8)}),
        ("advantages-only-centred", {"advantage": lambda a: a - a.mean()}),
        ("absolute-advantages", {"advantage": np.abs}),
    ]
)
