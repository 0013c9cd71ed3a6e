"""The curves of a run as pictures: which, and of what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gymnasium_solver.metrics.catalogue import describe
from gymnasium_solver.runs.layout import PLOTS, replace_file
from gymnasium_solver.runs.metrics_reader import Metrics
from gymnasium_solver.runs.svg import BLUE, GREEN, GREY, ORANGE, Line, Panel, svg

POINTS = 1000  # more than a picture has pixels for

GRAD_NORM = "train/metrics/grad_norm/"
PANELS = {
    "health.svg": (
        ("KL divergence", {"KL": "train/metrics/kl_divergence"}),
        ("clip fraction", {"clip fraction": "train/metrics/clip_fraction"}),
        ("entropy", {"entropy": "train/metrics/entropy"}),
        ("explained variance", {"explained variance": "train/metrics/explained_variance"}),
    ),
    "values.svg": (
        ("action values", {"mean": "train/metrics/q_mean", "largest, absolute": "train/metrics/q_max"}),
        ("TD error", {"TD error": "train/metrics/td_error"}),
        ("distance of the target network", {"distance": "train/metrics/target_distance"}),
        ("epsilon", {"epsilon": "train/hp/epsilon"}),
        ("temperature", {"temperature": "train/metrics/alpha"}),
        ("exploration bonus", {"mean": "train/metrics/bonus_mean"}),
    ),
    "losses.svg": (
        ("policy loss", {"policy": "train/loss/policy"}),
        ("value loss", {"value": "train/loss/value"}),
        (
            "gradient norms",
            {part.split("_")[0]: f"{GRAD_NORM}{part}" for part in ("actor_head", "critic_head", "trunk", "all")},
        ),
        ("learning rate", {"policy_lr": "train/hp/policy_lr", "value_lr": "train/hp/value_lr"}),
    ),
    "pace.svg": (
        ("episode length", {"training": "train/roll/ep_len_mean", "evaluation": "val/roll/ep_len_mean"}),
        ("steps per second", {"last epoch": "train/sys/fps", "whole run": "train/sys/fps_total"}),
    ),
}
REWARDS = ("train/roll/ep_rew_mean", "val/roll/ep_rew_mean", "val/roll/ep_rew_std")
COLUMNS = (*REWARDS, *(name for panels in PANELS.values() for _, lines in panels for name in lines.values()))


def draw_plots(run: Path, metrics: Metrics, threshold: float | None) -> dict[str, Path]:
    """Picture name → file, for the pictures that have anything to show."""
    metrics.load(COLUMNS)
    with np.errstate(all="ignore"):  # means over infinities: what is not finite is not drawn
        pictures = {"reward.svg": _reward(metrics, threshold)} | {
            name: [panel for title, lines in panels if (panel := _panel(title, lines, metrics)).lines]
            for name, panels in PANELS.items()
        }
    pictures = {name: panels for name, panels in pictures.items() if panels}
    if pictures:
        (run / PLOTS).mkdir(exist_ok=True)
    for name, panels in pictures.items():
        replace_file(run / PLOTS / name, [svg(panels)])
    return {name: run / PLOTS / name for name in pictures}


def thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of equal stretches, so that a long run draws as fast as a short one."""
    if len(x) <= POINTS:
        return x, y
    edges = np.linspace(0, len(x), POINTS + 1).astype(int)
    return x[edges[1:] - 1], np.add.reduceat(y, edges[:-1]) / np.diff(edges)


def _reward(metrics: Metrics, threshold: float | None) -> list[Panel]:
    training, evaluated, spread = (metrics.series(name) for name in REWARDS)
    lines = []
    if training[0].size:
        lines.append(Line("training episodes (mean)", *thinned(*training), BLUE, 1.7))
    if evaluated[0].size:
        lines.append(Line("evaluation (mean ± std)", *evaluated, ORANGE, 1.9, marked=True))
    if not lines:
        return []
    x, mean = evaluated
    area = (x, mean - spread[1], mean + spread[1]) if x.size and np.array_equal(x, spread[0]) else None
    level = None if threshold is None else (f"threshold {threshold:g}", threshold)
    return [Panel("return", lines, metrics.clock.axis, spread=area, level=level)]


def _panel(title: str, columns: Mapping[str, str], metrics: Metrics) -> Panel:
    coloured = zip(columns.items(), (BLUE, ORANGE, GREEN, GREY), strict=False)
    lines = [
        Line(label, *thinned(*metrics.series(name)), colour)
        for (label, name), colour in coloured
        if metrics.series(name)[0].size
    ]
    metric = describe(next(iter(columns.values())))
    healthy = (metric.low, metric.high) if len(columns) == 1 and metric and metric.has_range else None
    is_log = all(name.startswith(GRAD_NORM) for name in columns.values())
    return Panel(title, lines, is_log=is_log, healthy=healthy)
