"""The curves of a run as pictures. No pyplot: its global state and windows have no place in a training process."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.metrics.catalogue import describe
from gymnasium_solver.runs.layout import PLOTS, replace_file
from gymnasium_solver.runs.metrics_reader import Metrics

POINTS = 1000  # more than a picture has pixels for
BLUE, ORANGE, GREEN, GREY, INK = "#2f6fb0", "#e08a1e", "#3a9a5b", "#9aa3ad", "#39424e"

GRAD_NORM = "train/metrics/grad_norm/"
PANELS = {
    "health.png": (
        ("KL divergence", {"KL": "train/metrics/kl_divergence"}),
        ("clip fraction", {"clip fraction": "train/metrics/clip_fraction"}),
        ("entropy", {"entropy": "train/metrics/entropy"}),
        ("explained variance", {"explained variance": "train/metrics/explained_variance"}),
    ),
    "values.png": (
        ("action values", {"mean": "train/metrics/q_mean", "largest, absolute": "train/metrics/q_max"}),
        ("TD error", {"TD error": "train/metrics/td_error"}),
        ("distance of the target network", {"distance": "train/metrics/target_distance"}),
        ("epsilon", {"epsilon": "train/hp/epsilon"}),
        ("temperature", {"temperature": "train/metrics/alpha"}),
        ("exploration bonus", {"mean": "train/metrics/bonus_mean"}),
    ),
    "losses.png": (
        ("policy loss", {"policy": "train/loss/policy"}),
        ("value loss", {"value": "train/loss/value"}),
        (
            "gradient norms",
            {part.split("_")[0]: f"{GRAD_NORM}{part}" for part in ("actor_head", "critic_head", "trunk", "all")},
        ),
        ("learning rate", {"policy_lr": "train/hp/policy_lr", "value_lr": "train/hp/value_lr"}),
    ),
    "pace.png": (
        ("episode length", {"training": "train/roll/ep_len_mean", "evaluation": "val/roll/ep_len_mean"}),
        ("steps per second", {"last epoch": "train/sys/fps", "whole run": "train/sys/fps_total"}),
    ),
}
REWARDS = ("train/roll/ep_rew_mean", "val/roll/ep_rew_mean", "val/roll/ep_rew_std")
COLUMNS = (*REWARDS, *(name for panels in PANELS.values() for _, lines in panels for name in lines.values()))


def draw_plots(run: Path, metrics: Metrics, threshold: float | None) -> dict[str, Path]:
    """Picture name → file, for the pictures that have anything to show."""
    metrics.load(COLUMNS)
    pictures: dict[str, Path] = {}

    def draw(name: str, rows: int, columns: int, fill: Callable[[Any], None]) -> None:
        (run / PLOTS).mkdir(exist_ok=True)
        pictures[name] = run / PLOTS / name
        replace_file(pictures[name], [_picture(rows, columns, fill)])

    if any(metrics.series(name)[0].size for name in REWARDS[:2]):
        draw("reward.png", 1, 1, partial(_reward, metrics=metrics, threshold=threshold))
    for name, panels in PANELS.items():
        shown = [(title, lines) for title, lines in panels if any(metrics.series(x)[0].size for x in lines.values())]
        if shown:
            draw(name, (len(shown) + 1) // 2, min(len(shown), 2), partial(_panels, panels=shown, metrics=metrics))
    return pictures


def thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of equal stretches, so that a long run draws as fast as a short one."""
    if len(x) <= POINTS:
        return x, y
    edges = np.linspace(0, len(x), POINTS + 1).astype(int)
    return x[edges[1:] - 1], np.add.reduceat(y, edges[:-1]) / np.diff(edges)


def _picture(rows: int, columns: int, fill: Callable[[Any], None]) -> bytes:
    from matplotlib.figure import Figure

    height = 4.2 if rows == columns == 1 else 2.6 * rows
    figure = Figure(figsize=(9, height), dpi=110, facecolor="white")
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]
    fill(axes)
    figure.subplots_adjust(
        left=0.075, right=0.985, top=1 - 0.32 / height, bottom=0.5 / height, wspace=0.17, hspace=0.34
    )
    return png(figure)


def png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _reward(panels: list[Any], metrics: Metrics, threshold: float | None) -> None:
    (axes,) = panels
    steps, training = thinned(*metrics.series(REWARDS[0]))
    if steps.size:
        axes.plot(steps, training, color=BLUE, linewidth=1.6, label="training episodes (mean)")
    steps, evaluated = metrics.series(REWARDS[1])
    if steps.size:
        spread_steps, spread = metrics.series(REWARDS[2])
        if np.array_equal(steps, spread_steps):
            axes.fill_between(steps, evaluated - spread, evaluated + spread, color=ORANGE, alpha=0.15, linewidth=0)
        marker = "o" if steps.size <= 60 else None
        axes.plot(
            steps, evaluated, color=ORANGE, linewidth=1.8, marker=marker, markersize=4, label="evaluation (mean ± std)"
        )
    if threshold is not None:
        axes.axhline(threshold, color=GREEN, linestyle=(0, (5, 3)), linewidth=1.4, label=f"threshold {threshold:g}")
    _style(axes, "return")
    axes.set_xlabel(metrics.clock.axis, color=INK, fontsize=9)
    axes.legend(frameon=False, fontsize=9, loc="best")


def _panels(axes: list[Any], panels: list[tuple[str, dict[str, str]]], metrics: Metrics) -> None:
    for axis, (title, lines) in zip(axes, panels, strict=False):
        for (label, name), color in zip(lines.items(), (BLUE, ORANGE, GREEN, GREY), strict=False):
            steps, values = thinned(*metrics.series(name))
            finite = np.isfinite(values)
            if finite.any():
                axis.plot(steps[finite], values[finite], color=color, linewidth=1.3, label=label)
        _style(axis, title)
        if len(axis.lines) > 1:  # above the curves, beside the title
            axis.legend(
                frameon=False, fontsize=8, ncols=4, loc="lower right", bbox_to_anchor=(1.01, 0.98), borderpad=0,
                handlelength=1.2, columnspacing=1.0,
            )  # fmt: skip
        if all(name.startswith(GRAD_NORM) for name in lines.values()):
            axis.set_yscale("log")
        metric = describe(next(iter(lines.values())))
        if len(lines) == 1 and metric and metric.has_range:
            bottom, top = axis.get_ylim()
            axis.axhspan(
                bottom if metric.low is None else max(metric.low, bottom),
                top if metric.high is None else min(metric.high, top),
                color=GREEN, alpha=0.09, linewidth=0,
            )  # fmt: skip
            axis.set_ylim(bottom, top)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)


def style(axis: Any, title: str) -> None:
    """How every picture of ours looks."""
    axis.set_title(title, loc="left", fontsize=10, color=INK, fontweight="bold", pad=5)
    axis.grid(True, color="#e6e9ed", linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color("#c5ccd4")
    axis.tick_params(which="both", colors=INK, labelsize=8, length=3, color="#c5ccd4")


def _style(axis: Any, title: str) -> None:
    from matplotlib.ticker import EngFormatter

    style(axis, title)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.margins(x=0.01)
