"""PPO's formulas in NumPy, each as named steps, and the known ways to get a step wrong. What is measured against."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.verify.compliance.functions import differences
from gymnasium_solver.verify.compliance.mistakes import Changes, mistake
from gymnasium_solver.verify.compliance.samples import LossBatch, Rollout

Array = np.ndarray

# Derivatives are taken by `log_prob` (`lp`): what a wrong variant detaches, it takes from the batch.
SURROGATE: Changes = {
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
    do = {**SURROGATE, **changes}
    ratio = do["ratio"](batch, batch.log_prob if log_prob is None else log_prob)
    ratio, advantages = do["pair"](ratio, do["advantage"](batch.advantages))
    kept = do["choose"](ratio * advantages, do["clip"](ratio, advantages, batch.clip_range))
    return float(do["sign"](do["reduce"](kept)))


def surrogate_gradient(changes: Changes, batch: LossBatch) -> Array:
    return differences(lambda log_prob: surrogate(changes, batch, log_prob), batch.log_prob, step=1e-6)


def standardized(x: Array, ddof: int = 0) -> Array:
    return (x - x.mean()) / (x.std(ddof=ddof) + 1e-8)


OBJECTIVE: Changes = {"sign": lambda objective: objective}
LOSS_MISTAKES = (
    mistake("sum-reduction", reduce=np.sum),
    mistake("objective", **OBJECTIVE),
    mistake("normalised-inside", advantage=standardized),
    mistake("normalised-inside", advantage=lambda a: standardized(a, ddof=1)),
    mistake("advantage-sign", advantage=lambda a: -a),
    mistake("max-for-min", choose=np.maximum),
    mistake("ratio-inverted", ratio=lambda batch, lp: np.exp(batch.old_log_prob - lp)),
    mistake("ratio-not-exponentiated", ratio=lambda batch, lp: lp - batch.old_log_prob),
    mistake("ratio-of-log-probs", ratio=lambda batch, lp: lp / batch.old_log_prob),
    mistake("old-log-prob-recomputed", ratio=lambda batch, lp: np.exp(lp - batch.log_prob)),
    mistake("no-ratio", ratio=lambda batch, lp: lp, choose=lambda plain, clipped: plain),
    mistake("log-prob-detached", ratio=lambda batch, lp: batch.ratio),
    mistake("not-clipped", choose=lambda plain, clipped: plain),
    mistake("min-missing", choose=lambda plain, clipped: clipped),
    mistake("clipped-around-zero", clip=lambda ratio, a, eps: np.clip(ratio, -eps, eps) * a),
    mistake("clipped-above-only", clip=lambda ratio, a, eps: np.minimum(ratio, 1 + eps) * a),
    mistake("clipped-below-only", clip=lambda ratio, a, eps: np.maximum(ratio, 1 - eps) * a),
    mistake("log-ratio-clipped", clip=lambda ratio, a, eps: np.clip(ratio, np.exp(-eps), np.exp(eps)) * a),
    mistake("product-clipped", clip=lambda ratio, a, eps: np.clip(ratio * a, 1 - eps, 1 + eps)),
    mistake("advantage-missing-in-clipped-term", clip=lambda ratio, a, eps: np.clip(ratio, 1 - eps, 1 + eps) + 0 * a),
    mistake("broadcast", pair=lambda ratio, a: (ratio[:, None], a[None, :])),
    mistake("means-before-product", pair=lambda ratio, a: (ratio.mean(keepdims=True), a.mean(keepdims=True))),
    mistake("advantages-not-centred", advantage=lambda a: a / (a.std() + 1e-8)),
    mistake("advantages-by-variance", advantage=lambda a: (a - a.mean()) / (a.var() + 1e-8)),
    mistake("advantages-only-centred", advantage=lambda a: a - a.mean()),
    mistake("absolute-advantages", advantage=np.abs),
)


def _accumulated(delta: Array, decay: Array) -> Array:
    result, carry = np.zeros_like(delta), np.zeros(delta.shape[1])
    for t in reversed(range(len(delta))):
        result[t] = carry = delta[t] + decay[t] * carry
    return result


def _ending_with(values: Array, last: Array) -> Array:
    return np.concatenate([values[:-1], last[None]])


GAE: Changes = {
    "reward": lambda rewards: rewards,
    "index": lambda flags: flags,
    "bootstrap": lambda terminated, done: 1 - terminated,
    "trace": lambda terminated, done: 1 - done,
    "successor": lambda x: x.next_values,
    "discount": lambda gamma, lambda_: gamma,
    "decay": lambda gamma, lambda_: gamma * lambda_,
    "baseline": lambda values: values,
    "accumulate": _accumulated,
    "output": lambda advantages, values: advantages,
}


def advantages(changes: Changes, x: Rollout) -> Array:
    """https://arxiv.org/abs/1506.02438 equation 16, with some steps done otherwise. [T, N]"""
    do = {**GAE, **changes}
    flags = do["index"](x.terminated), do["index"](x.done)
    target = do["reward"](x.rewards) + do["discount"](*x[-2:]) * do["successor"](x) * do["bootstrap"](*flags)
    result = do["accumulate"](target - do["baseline"](x.values), do["decay"](*x[-2:]) * do["trace"](*flags))
    return do["output"](result, x.values)


def _open(terminated: Array, done: Array) -> Array:
    return np.ones_like(done)


GAE_MISTAKES = (
    mistake("normalised-inside", output=lambda a, v: standardized(a)),
    mistake("normalised-inside", output=lambda a, v: standardized(a, ddof=1)),
    mistake("dones-not-masked", bootstrap=_open, trace=_open),
    mistake("trace-not-cut", trace=_open),
    mistake("bootstrap-not-masked", bootstrap=_open),
    mistake("mask-inverted", bootstrap=lambda t, d: t, trace=lambda t, d: d),
    # The flag of the next row, or of the previous; what stands at the edge is a matter of how it was written.
    mistake("done-index", index=lambda f: np.concatenate([f[1:], 0 * f[:1]])),
    mistake("done-index", index=lambda f: np.concatenate([f[1:], f[-1:]])),
    mistake("done-index", index=lambda f: np.concatenate([f[1:], 0 * f[:1] + 1])),
    mistake("done-index", index=lambda f: np.concatenate([0 * f[:1], f[:-1]])),
    mistake("done-index", index=lambda f: np.roll(f, 1, axis=0)),
    mistake("last-row-not-masked", index=lambda f: _ending_with(f, 0 * f[-1])),
    mistake("truncation-as-termination", bootstrap=lambda t, d: 1 - d),
    mistake("trace-not-cut-at-truncation", trace=lambda t, d: 1 - t),
    mistake("lambda-missing", decay=lambda gamma, lambda_: gamma),
    mistake("gamma-missing-in-trace", decay=lambda gamma, lambda_: lambda_),
    mistake("trace-missing", decay=lambda gamma, lambda_: 0.0),
    mistake("gamma-missing-in-bootstrap", discount=lambda gamma, lambda_: 1.0),
    mistake("gamma-lambda-swapped", discount=lambda gamma, lambda_: lambda_),
    mistake("value-not-subtracted", baseline=lambda values: 0.0),
    mistake("successor-is-own-value", successor=lambda x: x.values),
    mistake("last-value-everywhere", successor=lambda x: np.broadcast_to(x.next_values[-1], x.values.shape)),
    mistake("last-value-ignored", successor=lambda x: _ending_with(x.next_values, 0 * x.values[-1])),
    mistake("last-value-ignored", successor=lambda x: _ending_with(x.next_values, x.values[-1])),
    mistake("runs-forwards", accumulate=lambda delta, decay: _accumulated(delta[::-1], decay[::-1])[::-1]),
    mistake("rewards-shifted", reward=lambda rewards: np.concatenate([rewards[1:], 0 * rewards[:1]])),
    mistake("advantage-sign", output=lambda a, v: -a),
    mistake("returns-for-advantages", output=lambda a, v: a + v),
)
