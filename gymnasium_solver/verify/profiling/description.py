"""What was measured, as the document that a profile is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gymnasium_solver.config.schema import Config, OffPolicyConfig
from gymnasium_solver.processes import cores
from gymnasium_solver.verify.profiling.clock import PHASES, phase_seconds, tree_of
from gymnasium_solver.verify.profiling.limits import limits_of
from gymnasium_solver.verify.profiling.measure import Measured, learning_starts


def describe(config: Config, measured: Measured) -> dict[str, Any]:
    booked = phase_seconds(measured.clock)
    steady = measured.seconds - sum(booked[phase] for phase in ("compile", "evaluate"))
    document = {
        "env_id": config.env_id,
        "algo_id": config.algo_id,
        "engine": measured.engine,
        "n_envs": config.n_envs,
        "n_steps": config.n_steps,
        "seconds": measured.seconds,
        "env_steps": measured.env_steps,
        "epochs": measured.epochs,
        "gradient_steps": measured.gradient_steps,
        "steps_per_second": measured.env_steps / steady,
        "phases": [
            {
                "phase": phase,
                "seconds": booked[phase],
                "share": booked[phase] / measured.seconds,
                "us_per_env_step": booked[phase] / measured.env_steps * 1e6,
            }
            for phase in PHASES
        ],
        "work": _work(measured, booked, steady),
        "tree": tree_of(measured.clock),
        "compile_in_background": measured.clock.background.get("compile", 0.0),
        "cores": len(cores()) or os.cpu_count() or 1,
        "cores_used": measured.cpu_seconds / measured.seconds,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "peak_memory_mb": measured.peak_memory_mb,
        "device_memory_mb": measured.device_memory_mb,
        "evaluation": _evaluation(measured, steady),
        "notes": _shortened(config),
    }
    return document | {"limits": limits_of(document)}


def _work(measured: Measured, booked: Mapping[str, float], steady: float) -> dict[str, Any]:
    work, clock = measured.work, measured.clock
    calls = {
        kind: sum(n for path, n in clock.calls.items() if path[-1] == kind and "evaluate" not in path)
        for kind in work.call_seconds
    }

    def rate(phase: str, flops: float, count: int) -> dict[str, float]:
        """`flops`: of one gradient step or env step."""
        per_second = flops * count / booked[phase] if booked[phase] > 0 else 0.0
        return {
            "mflop": flops / 1e6,
            "gflops": per_second / 1e9,
            "of_peak": per_second / work.peak.flops_per_second,
        }

    dispatch = sum(calls[kind] * seconds for kind, seconds in work.call_seconds.items())
    return {
        "peak_gflops": work.peak.flops_per_second / 1e9,
        "peak_cores": work.peak.cores,
        "update": rate("update", work.update_flops, measured.gradient_steps),
        "act": rate("act", work.act_flops, measured.env_steps),
        "calls_per_second": sum(calls.values()) / steady,
        "empty_call_us": dispatch / max(1, sum(calls.values())) * 1e6,
        "dispatch_seconds": dispatch,
        "parts_add_up_to": work.parts_add_up_to,
    }


def _shortened(config: Config) -> list[str]:
    if not isinstance(config, OffPolicyConfig) or (cut := learning_starts(config)) == config.learning_starts:
        return []
    return [f"learning began after {cut:,} env steps here instead of {config.learning_starts:,}"]


def _evaluation(measured: Measured, steady: float) -> dict[str, Any]:
    """How often one is due and, where none was in the time, what share of the time one would take."""
    told: dict[str, Any] = {"every_epochs": measured.eval_every, "was_due": measured.evaluation is None}
    if measured.evaluation is not None:
        seconds, is_whole = measured.evaluation
        between = steady / measured.epochs * measured.eval_every
        told |= {"seconds": seconds, "is_whole": is_whole, "share": seconds / (seconds + between)}
    return told
