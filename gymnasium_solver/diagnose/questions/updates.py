"""What updates do: to the policy (KL, entropy, clipping), to the parameters (gradients, step sizes), and how many there
are."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions.asking import (
    Answer,
    Evidence,
    below,
    ever_above,
    grows,
    late_above,
    late_below,
)
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.metrics.clocks import UPDATES

KL = "train/metrics/kl_divergence"
ENTROPY = "train/metrics/entropy_relative"
STD = "train/metrics/policy_std"
CLIPPED = "train/metrics/clip_fraction"
MOVED = "train/metrics/update_norm_ratio"
GRADIENT = "train/metrics/grad_norm/all"
HEAD_GRADIENT = "train/metrics/grad_norm/actor_head"
TRUNK_GRADIENT = "train/metrics/grad_norm/trunk"
GRADIENT_CLIPPED = "train/metrics/grad_clip_fraction"
DEAD = "train/metrics/dead_units"


def _kl_negative(r: Readings, _: Performance) -> Answer | None:
    curve = r.series(KL)
    return None if curve is None else Answer(curve.low < -1e-5, curve.low, "at least 0")


def _moves_without_learning(r: Readings, p: Performance) -> Answer | None:
    """The policy changes as much as in any run, and nothing comes of it."""
    kl = r.late(KL)
    if kl is None or p.score is None:
        return None
    return Answer(1e-3 < kl < 0.1 and p.score < 0.15, kl, "a return that rises with it")


def _entropy_gone_early(r: Readings, _: Performance) -> Answer | None:
    curve = r.series(ENTROPY)
    if curve is None:
        return None
    middle = float(np.median(curve.part(0.2, 0.5)))
    low = np.flatnonzero(curve.values < 0.1)
    return Answer(
        middle < 0.1, middle, "above 0.1 in the first half of the run", float(curve.steps[low[0]]) if low.size else None
    )


def _surrogate_dead(r: Readings, _: Performance) -> Answer | None:
    """No gradient reaches the policy's last layer, though the learning rate would let it."""
    gradient, loss, kl = r.series(HEAD_GRADIENT), r.series("train/loss/policy"), r.late(KL)
    rate = r.series("train/hp/policy_lr")
    if rate is not None and float(np.median(rate.part(0.3, 0.8))) < 0.05 * rate.high:
        return None  # nothing moves for another reason
    if gradient is not None and len(gradient.values) >= 5:
        size = float(np.median(gradient.part(0.3, 0.8)))
        return Answer(size < 1e-7, size, "a gradient above 1e-7")
    if loss is None or kl is None or len(loss.values) < 5:
        return None
    size = float(np.median(np.abs(loss.part(0.3, 0.8))))
    return Answer(size < 1e-7 and abs(kl) < 1e-8, size, "a policy loss above 1e-7")


def _far_above_clip(r: Readings, _: Performance) -> Answer | None:
    norm, limit = r.late(GRADIENT), r.number("max_grad_norm")
    share = r.late(GRADIENT_CLIPPED)
    if norm is None or share is None:
        return None
    if limit is None:
        return Answer(False, norm, "near max_grad_norm") if share == 0 else None
    return Answer(share > 0.95 and norm > 30 * limit, norm / limit, "at most 30 times max_grad_norm")


def _trunk_without_gradient(r: Readings, _: Performance) -> Answer | None:
    trunk, whole = r.late(TRUNK_GRADIENT), r.late(GRADIENT)
    if trunk is None or whole is None:
        return None
    return Answer(trunk < 1e-7 and whole > 1e-6, trunk, "above 0, as in the heads")


def _updates_begin_late(r: Readings, _: Performance) -> Answer | None:
    count, planned = r.series(UPDATES.column), r.planned_env_steps
    if count is None or not planned:
        return None
    at = np.flatnonzero(count.values > 0)
    begin = float(count.steps[at[0]]) if at.size else r.steps
    return Answer(begin / planned > 0.4 and r.steps > 0.3 * planned, begin / planned, "within the first 0.4", begin)


def _few_updates(r: Readings, _: Performance) -> Answer | None:
    count = r.series(UPDATES.column)
    return None if count is None or r.has("tabular") else below(count.high, 300)


QUESTIONS = (
    late_above(
        "ratio-off-one",
        "the policy ratio is not 1 before the first step of an update",
        "train/metrics/ratio_deviation_first",
        1e-3,
        invariant=True,
    ),
    Evidence("kl-negative", "the estimate of the KL divergence is negative", KL, _kl_negative, invariant=True),
    late_below("kl-none", "updates do not change the policy", KL, 1e-6),
    late_below("kl-tiny", "updates hardly change the policy", KL, 2e-4),
    late_above("kl-large", "updates change the policy a lot", KL, 0.05),
    ever_above("kl-ever-huge", "one update changed the policy beyond recognition", KL, 0.5),
    Evidence("moves-without-learning", "the policy changes, but the return does not", KL, _moves_without_learning),
    late_above("entropy-uniform", "the policy is practically uniform towards the end", ENTROPY, 0.97),
    late_above("entropy-high", "the policy is still nearly uniform towards the end", ENTROPY, 0.9),
    Evidence("entropy-gone-early", "the policy became deterministic in the first half", ENTROPY, _entropy_gone_early),
    late_below("entropy-gone", "the policy is deterministic", ENTROPY, 0.05),
    late_above("std-huge", "the policy's standard deviation grew large", STD, 2.0),
    late_below("std-tiny", "the policy's standard deviation is almost 0", STD, 0.05),
    late_above("clip-high", "most samples leave the clip range", CLIPPED, 0.35),
    late_below("clip-none", "no sample leaves the clip range", CLIPPED, 0.002),
    late_below("update-tiny", "updates hardly move the parameters", MOVED, 3e-4),
    late_above("update-large", "updates move the parameters very far", MOVED, 0.15),
    Evidence("surrogate-dead", "the policy gets no gradient", HEAD_GRADIENT, _surrogate_dead, invariant=True),
    late_above("gradient-explodes", "the gradient is very large", GRADIENT, 1e3),
    late_above("clipped-always", "the gradient is clipped at almost every step", GRADIENT_CLIPPED, 0.98),
    Evidence(
        "gradient-far-above-clip",
        "the gradient is far larger than what clipping leaves of it",
        GRADIENT,
        _far_above_clip,
    ),
    Evidence(
        "trunk-without-gradient",
        "no gradient reaches the layers below the heads",
        TRUNK_GRADIENT,
        _trunk_without_gradient,
    ),
    late_above("units-dead", "most hidden units do nothing", DEAD, 0.5),
    grows("units-dying", "more and more hidden units fall silent", DEAD, 3),
    Evidence(
        "updates-begin-late", "learning begins late in the run", "share of the run before it", _updates_begin_late
    ),
    Evidence("updates-few", "few gradient steps were made", UPDATES.column, _few_updates),
    late_below("updates-cut-short", "target KL ends updates early", "train/metrics/epochs_done", 0.4),
)
