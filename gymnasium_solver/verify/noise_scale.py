"""Gradient noise scale (McCandlish et al. 2018, https://arxiv.org/abs/1812.06162) and the batch size it suggests.

B = tr(Σ) / |G|²: the batch at which the noise of the gradient is as large as the gradient. Well below it a batch twice
as large makes nearly twice the progress a step; well above it the further rows are nearly wasted.

Rows of a rollout are correlated, so |G|² is estimated by the products of gradients of different blocks of experience,
which is unbiased whatever happens within a block; minibatches of the size the run uses say how noisy those are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gymnasium_solver.config.cards import card_of, find_card
from gymnasium_solver.config.load import build_config
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.runs.noise_scale_file import write_noise_scale
from gymnasium_solver.runs.reader import Run, find_run, split_checkpoint_ref
from gymnasium_solver.statistics import LEVEL, RESAMPLES

REFERENCE = "https://arxiv.org/abs/1812.06162"
FITS = 2.0  # a batch within this factor of the noise scale needs no change: the optimum is flat
MOST_CHECKPOINTS = 5
LARGEST_BATCH = 16_384
FRESH = (
    "rows of one rollout are correlated, so the scale is in rows as this run collects them; it holds for the first "
    "gradient step after a rollout, and usually grows during training"
)
REPLAYED = (
    "minibatches were drawn from the replay as training draws them, at the end of the run; the scale usually grows "
    "during training"
)


@dataclass(frozen=True)
class Estimate:
    """Of one part of the loss at one checkpoint; where the gradient is lost in its noise, only `low` is known."""

    part: str
    noise_scale: float | None
    low: float | None
    high: float | None  # None: no bound
    signal: float  # |G|², the squared norm of the true gradient
    signal_low: float
    noise: float  # tr(Σ), the variance of one row's gradient
    blocks: int
    minibatches: int
    rows: int  # of a minibatch


def estimate(part: str, means: np.ndarray, squares: np.ndarray, rows: int) -> Estimate:
    """From the mean gradient of each block [K, P] and the squared norms of its minibatches' gradients [K, M].

    The interval is a bootstrap over blocks; a product of a block with itself is never counted.
    """
    products = means.astype(np.float64) @ means.T.astype(np.float64)
    norms, count = squares.mean(axis=1), len(squares)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    signal, noise = _moments(np.ones((1, count)), products, norms, rows)
    signals, noises = _moments(drawn.astype(float), products, norms, rows)
    scales = np.where(signals > 0, noises / np.maximum(signals, 1e-300), np.inf)
    tail = (1 - LEVEL) / 2
    signal_low = float(np.quantile(signals, tail))
    low, high = (float(np.quantile(scales, q, method="nearest")) for q in (tail, 1 - tail))
    measurable = signal_low > 0 and signal[0] > 0
    return Estimate(
        part=part,
        noise_scale=max(0.0, float(noise[0] / signal[0])) if measurable else None,
        low=max(0.0, low) if math.isfinite(low) else None,
        high=high if measurable and math.isfinite(high) else None,
        signal=float(signal[0]),
        signal_low=signal_low,
        noise=float(noise[0]),
        blocks=count,
        minibatches=squares.size,
        rows=rows,
    )


def _moments(weights: np.ndarray, products: np.ndarray, norms: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """|G|² and tr(Σ), for each row of weights [R, K] of the blocks."""
    pairs = np.einsum("rk,kl,rl->r", weights, products, weights) - weights**2 @ np.diag(products)
    signal = pairs / (weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1))
    return signal, rows * (weights @ norms / weights.sum(axis=1) - signal)


def measure(
    ref: str,
    *,
    checkpoint: str | None = None,
    rows: int | None = None,
    runs_dir: Any = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The noise scale of a run's gradients at a checkpoint, or else at several that are spread over its training; about
    `rows` of experience are looked at for each. Written into the run as noise_scale.json."""
    from gymnasium_solver.train.gradients import ROWS, minibatch_gradients

    name, named = split_checkpoint_ref(ref)
    run = find_run(name, runs_dir)
    found: list[dict[str, Any]] = []
    for name in _checkpoints(run, checkpoint or named):
        say(f"measuring at checkpoint {name}")
        gradients = minibatch_gradients(run, name, rows or ROWS)
        parts = [estimate(p, gradients.means[p], gradients.squares[p], gradients.rows) for p in gradients.means]
        if not parts:
            raise SolverError(
                f"checkpoint {name} of {run.run_id} has gradients of exactly 0: nothing is learnt from it"
            )
        found.append({"checkpoint": name, "parts": {part.part: asdict(part) for part in parts}})
    document = _document(run, found)
    try:
        write_noise_scale(run, document)
    except SolverError as error:  # what was measured is worth more than its copy on disk
        say(f"warning: {error}")
    return document


def _checkpoints(run: Run, asked: str | None) -> list[str]:
    names = run.checkpoints()
    if not names:
        raise NotFoundError(f"run {run.run_id} has no checkpoint yet; wait for the first, or train it again")
    if asked is not None:
        return [asked.removeprefix("@")]
    if _is_replayed(run.config.get("algo_id")):
        return ["last"]  # the one that holds the replay
    epochs = sorted((name for name in names if name.startswith("epoch=")), key=lambda name: int(name[6:]))
    if not epochs:
        return [names[0]]
    return [epochs[i] for i in sorted({round(x) for x in np.linspace(0, len(epochs) - 1, MOST_CHECKPOINTS)})]


def _document(run: Run, found: list[dict[str, Any]]) -> dict[str, Any]:
    """The batch size follows from the policy's gradient, or from the value's where there is no other."""
    part = "policy" if "policy" in found[0]["parts"] else "value"
    estimates = [entry["parts"][part] for entry in found]
    measured = [one for one in estimates if one["noise_scale"] is not None]
    if 2 * len(measured) < len(estimates):  # the few that can be measured would speak for those that cannot
        measured = []
    config = build_config(run.config, f"{run.run_id}/config.json")
    batch = int(getattr(config, "minibatch", getattr(config, "batch_size", config.rollout)))
    scale = float(np.median([one["noise_scale"] for one in measured])) if measured else None
    low, high = _range(measured)
    direction = _direction(batch, scale, low, high)
    change = suggestion(run.config, scale) if scale is not None and direction != "keep" else {}
    return {
        "run_id": run.run_id,
        "env_id": config.env_id,
        "algo_id": config.algo_id,
        "part": part,
        "noise_scale": scale,
        "low": low,
        "high": high,
        "batch_size": batch,
        "ratio": scale / batch if scale is not None else None,
        "direction": direction,
        "set": change,
        "verdict": _verdict(config, batch, scale, direction, change),
        "measurable": f"at {len(measured)} of {len(found)} checkpoints",
        "checkpoints": found,
        "caveat": REPLAYED if _is_replayed(config.algo_id) else FRESH,
        "reference": REFERENCE,
    }


def _range(measured: list[dict[str, Any]]) -> tuple[float | None, float | None]:
    """The bounds of one checkpoint; of several, from the lowest bound to the highest."""
    lows = [one["low"] for one in measured]
    highs = [one["high"] for one in measured]
    return min(lows, default=None), None if None in highs else max(highs, default=None)


def _direction(batch: int, scale: float | None, low: float | None, high: float | None) -> str | None:
    """Where the batch would have to move; None where that cannot be told."""
    if scale is None:
        return None
    if low is not None and low > FITS * batch:
        return "larger"
    if high is not None and high < batch / FITS:
        return "smaller"
    if batch / FITS <= scale <= FITS * batch:
        return "keep"
    return "probably larger" if scale > batch else "probably smaller"


def _is_replayed(algo_id: object) -> bool:
    card = find_card(algo_id)
    return card is not None and card.feed == "replay"


def suggestion(fields: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """The valid setting nearest to the noise scale: a power of two that divides the rollout; where the rollout is the
    batch, the number of environments."""
    config = build_config(dict(fields), "the run's config.json")
    rollout = config.rollout
    powers = [2**exponent for exponent in range(1, int(math.log2(LARGEST_BATCH)) + 1)]
    name, rows = "batch_size", 1
    if card_of(config.algo_id).splits_rollouts:
        options = [power for power in powers if rollout % power == 0] or [rollout]
    elif hasattr(config, "batch_size"):
        options = [power for power in powers if power >= 16]
    else:
        name, rows, options = "n_envs", config.n_steps, [1, *powers[:8]]
    for option in sorted(options, key=lambda option: abs(math.log(option * rows / scale))):
        if fields.get(name) == option:
            return {}
        try:
            build_config({**fields, name: option}, "suggestion")
        except ConfigError:
            continue
        return {name: option}
    return {}


def _verdict(config: Any, batch: int, scale: float | None, direction: str | None, change: dict[str, Any]) -> str:
    if scale is None:
        return (
            "not measurable here: the gradient is lost in its noise, as happens when nothing is left to gain or "
            "nothing is learnt; measure an earlier checkpoint (--checkpoint), or more rows (--rows)"
        )
    word = "minibatch" if hasattr(config, "batch_size") else "rollout"
    told = f"a {word} of {batch:,} rows against a noise scale of {scale:,.0f}: "
    if direction == "keep":
        return f"{told}fits, within a factor of {FITS:g}"
    larger = direction in ("larger", "probably larger")
    told += f"{direction}, " + ("gradients are mostly noise" if larger else "fewer rows per step would do as well")
    told += "".join(f"; set {name}: {value}" for name, value in change.items())
    if card_of(config.algo_id).splits_rollouts and larger and scale > FITS * config.rollout:
        told += f"; a rollout has only {config.rollout:,} rows: for more, raise n_envs or n_steps"
    return told
