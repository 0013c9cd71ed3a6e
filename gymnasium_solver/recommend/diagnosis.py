"""The document of a diagnosis, whole, as every way in shows it: summary, metrics, bottlenecks, recommendations, next
steps, outlook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.engine import Diagnosis, diagnose, severity
from gymnasium_solver.diagnose.evidence import BY_NAME
from gymnasium_solver.diagnose.inference import TIE, Ranked
from gymnasium_solver.diagnose.outlook import foresee
from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.precedents import in_words, set_against
from gymnasium_solver.diagnose.readings import EVALUATION, TRAINING, Readings, read
from gymnasium_solver.metrics import catalogue
from gymnasium_solver.metrics.clocks import ENV_STEPS
from gymnasium_solver.recommend.recommendations import recommend
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.foreign.parameters import translate
from gymnasium_solver.runs.outcome import outcome
from gymnasium_solver.runs.reader import Run

KEY_METRICS = (
    EVALUATION, TRAINING, "train/roll/ep_len_mean", "train/metrics/kl_divergence", "train/metrics/clip_fraction",
    "train/metrics/entropy_relative", "train/metrics/entropy", "train/metrics/policy_std",
    "train/metrics/explained_variance", "train/loss/policy", "train/loss/value", "train/metrics/grad_norm/all",
    "train/metrics/grad_norm/actor_head", "train/metrics/grad_norm/critic_head", "train/metrics/grad_norm/trunk",
    "train/metrics/grad_clip_fraction", "train/metrics/update_norm_ratio", "train/metrics/q_mean",
    "train/metrics/q_max", "train/metrics/td_error", "train/metrics/target_distance", "train/metrics/alpha",
    "train/metrics/dead_units", "train/data/action_top_share", "train/data/action_saturation", "train/hp/policy_lr",
    "train/hp/epsilon", "train/sys/fps",
)  # fmt: skip


def diagnose_run(run: Run) -> dict[str, Any]:
    """The contract's document."""
    return document(diagnose(read(run)), run)


def document(diagnosis: Diagnosis, run: Run | None = None) -> dict[str, Any]:
    """The contract's JSON; for a run of another library the advice is in its words as well."""
    recommendations = recommend(diagnosis)
    library = layout.read_json(run.path / layout.SOURCE).get("library") if run is not None else None
    if run is not None and library:
        for entry in recommendations:
            entry["translated"] = translate(library, entry["set"], run.config)
    readings, performance, ranked = diagnosis.readings, diagnosis.performance, diagnosis.ranked
    bottlenecks = [_bottleneck(diagnosis, entry) for entry in ranked]
    outlook = foresee(readings, performance, ranked)
    history = set_against(readings.config, readings.beside) if performance.is_bad else None
    return {
        "summary": _summary(readings, performance),
        "metrics": {name: _curve(readings, name) for name in KEY_METRICS if name in readings.curves},
        "bottlenecks": bottlenecks,
        "recommendations": recommendations,
        "next_steps": _next_steps(diagnosis, recommendations, outlook, history),
        "outlook": outlook,
        "missing": readings.missing,
        **({"history": history} if history else {}),
    }


def _summary(readings: Readings, performance: Performance) -> dict[str, Any]:
    threshold, solved = performance.threshold, performance.verdict == "solved"
    evaluated = EVALUATION in readings.curves
    returns = readings.curves.get(EVALUATION if evaluated else TRAINING)
    best = None if returns is None else returns.high  # as everywhere: the best mean, not what the judgement smooths
    status, reason = outcome({**readings.record, "status": readings.status}, solved, threshold)
    gap = None if best is None or threshold is None else max(0.0, threshold - best)
    if solved:
        gap = 0.0
    return {
        "run_id": readings.run_id,
        "env_id": readings.env_id,
        "algo_id": readings.algo,
        "status": status,
        "reason": reason,
        "env_steps": int(env_steps.high) if (env_steps := readings.curves.get(ENV_STEPS.column)) else 0,
        "max_env_steps": int(readings.planned_env_steps) if readings.planned_env_steps else None,
        "clock": readings.clock.name,
        "progress": int(readings.steps),
        "budget": int(readings.planned) if readings.planned else None,
        "evaluated": evaluated,
        "best_reward": best,
        "last_reward": performance.last,
        "threshold": threshold,
        "solved": solved,
        "gap": gap,
        "gap_percent": None if gap is None or not threshold else 100 * gap / abs(threshold),
        "verdict": performance.words,
        "efficiency": _efficiency(readings, performance),
        "error": readings.record.get("error"),
    }


def _efficiency(readings: Readings, performance: Performance) -> str:
    usual = readings.usual_steps
    reached = performance.steps_to_threshold
    if not usual:
        return "no reference to compare its pace with"
    if reached is None:
        return (
            f"the shipped configuration reaches the threshold in {usual:,.0f} steps; this run had {readings.steps:,.0f}"
        )
    return f"{reached:,.0f} steps to the threshold, {reached / usual:.1f} times what the shipped configuration needs"


def _curve(readings: Readings, name: str) -> dict[str, Any]:
    curve = readings.curves[name]
    entry = catalogue.describe(name)
    shown: dict[str, Any] = {
        "last": curve.last,
        "early": curve.early,
        "late": curve.late,
        "min": curve.low,
        "max": curve.high,
        "shape": curve.shape(is_return=name in (EVALUATION, TRAINING), unit=readings.clock.unit),
        "points": _points(curve.thin.values),
    }
    if entry is not None and entry.has_range:
        low, high = entry.low, entry.high
        shown["range"] = [low, high]
        shown["range_source"] = entry.source
        shown["in_range"] = (low is None or curve.late >= low) and (high is None or curve.late <= high)
    if curve.change_point:
        step, before, after = curve.change_point
        shown["change_point"] = {"step": step, "before": before, "after": after}
    if curve.spikes.size:
        shown["spikes"] = {"count": int(curve.spikes.size), "first_step": float(curve.spikes[0])}
    if name in readings.non_finite:
        shown["non_finite_from"] = readings.non_finite[name]
    return shown


def _points(values: np.ndarray) -> list[float]:
    """Enough of the curve to draw it small."""
    index = np.linspace(0, len(values) - 1, min(len(values), 40)).astype(int)
    return [float(value) for value in values[index]]


def _bottleneck(diagnosis: Diagnosis, entry: Ranked) -> dict[str, Any]:
    found = {
        "cause": entry.cause.id,
        "category": entry.cause.category,
        "severity": severity(diagnosis, entry),
        "confidence": round(entry.confidence, 3),
        "title": entry.cause.title,
        "root_cause": entry.cause.why,
        "evidence": [_evidence(diagnosis, name) for name in entry.speaks_for],
        "against": [_evidence(diagnosis, name) for name in entry.speaks_against],
    }
    ties = [
        other.cause.id
        for other in diagnosis.ranked
        if other is not entry and other.confidence * TIE >= entry.confidence >= other.confidence / TIE
    ]
    if ties:
        found["tied_with"] = ties
    if entry.cause.where:
        found["where"] = entry.cause.where
    if entry.cause.references:
        found["references"] = list(entry.cause.references)
    return found


def _evidence(diagnosis: Diagnosis, name: str) -> dict[str, Any]:
    asked, answer = BY_NAME[name], diagnosis.answers[name]
    assert answer is not None
    text = asked.text if answer.holds else f"not seen: {asked.text}"
    return {
        "signal": name,
        "text": text,
        "metric": asked.metric,
        "value": answer.value,
        "expected": answer.expected,
        "step": answer.step,
        "kind": asked.kind,
    }


def _next_steps(
    diagnosis: Diagnosis,
    recommendations: list[dict[str, Any]],
    outlook: Mapping[str, Any] | None,
    history: Mapping[str, Any] | None,
) -> list[str]:
    readings, performance, run_id = diagnosis.readings, diagnosis.performance, diagnosis.readings.run_id
    has_checkpoint = readings.audit is not None
    steps = []
    if outlook is not None:
        odds = outlook["probability_of_threshold"]
        steps.append(f"{outlook['action']}" + ("" if odds is None else f" (odds of the threshold: {odds:.0%})"))
    changes = [entry for entry in recommendations if entry["set"]]
    if performance.verdict == "solved" and not changes:
        score = f"; score it: gsolve evaluate {run_id} --episodes 100" if has_checkpoint else ""
        steps.append(f"nothing to fix{score}")
    elif recommendations and not recommendations[0]["set"]:
        steps.append("look where the first finding points; no setting fixes it")
    elif changes and changes[0]["cli"]:
        steps.append(f"run the first change over a few seeds: {changes[0]['cli']} --seeds 3")
    elif performance.is_bad and not readings.ended_early:
        steps.append("nothing in the run explains it: train the shipped configuration and compare the two")
    elif performance.verdict == "close" and not readings.ended_early:
        steps.append("train it for longer: nothing is wrong with it, and it was nearly there")
    to_change = bool(changes) and (performance.is_bad or readings.status == "failed")
    if readings.ended_early and performance.verdict != "solved" and not to_change:
        first = "once the error is fixed, " if readings.status == "failed" else ""
        how = f"continue where it ended: gsolve train --resume {run_id}" if has_checkpoint else "train it again"
        steps.append(f"{first}{how}")
    ranked = diagnosis.ranked
    if len(ranked) > 1 and ranked[1].confidence * TIE >= ranked[0].confidence:
        steps.append(
            f"{ranked[0].cause.id} and {ranked[1].cause.id} cannot be told apart from this run; settle it with: "
            f"gsolve diagnose {run_id} --probe"
        )
    before = diagnosis.readings.solved_before
    if performance.is_bad and before is not None:
        fields = sorted(diagnosis.readings.changed_since_solved)
        differs = f"; it differs in {', '.join(fields[:6])}" if fields else " with the same settings"
        steps.append(f"{before[0]} solved this task{differs}")
    if history:
        steps.append(in_words(history))
    watched = {BY_NAME[name].metric for entry in ranked[:2] for name in entry.speaks_for}
    metrics = sorted(name for name in watched if name.startswith(("train/", "val/")))[:4]
    if metrics and performance.verdict != "solved":
        steps.append(f"watch {', '.join(metrics)}")
    return steps
