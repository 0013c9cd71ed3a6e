"""Diagnoses to plan probes for, without a run on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.causes import BY_ID
from gymnasium_solver.diagnose.engine import Diagnosis
from gymnasium_solver.diagnose.inference import Ranked
from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.diagnose.series import Series
from gymnasium_solver.metrics.clocks import ENV_STEPS

Suspect = Callable[..., Diagnosis]


def config_for(env_id: str = "CartPole-v1", **fields: Any) -> Config:
    return build_config({"env_id": env_id, "algo_id": "ppo", "seed": 0, "max_env_steps": 50_000, **fields}, "test")


def curve(*values: float, steps: float = 50_000) -> Series:
    return Series(np.linspace(steps / len(values), steps, len(values)), np.array(values, float))


@pytest.fixture
def suspect() -> Suspect:
    """A failing run of the config, with these causes at these confidences."""

    def suspect(
        confidences: Mapping[str, float],
        config: Config | None = None,
        *,
        verdict: str = "failing",
        threshold: float | None = 475.0,
        start: float = 21.0,
        seconds: float = 5.0,
        curves: Mapping[str, Series] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Diagnosis:
        config = config or config_for()
        readings = Readings(
            run_id="run",
            status="completed",
            config=to_dict(config) if fields is None else fields,
            curves={ENV_STEPS.column: curve(25_000, 50_000), **(curves or {})},
            record={"status": "completed", "elapsed_s": seconds, "threshold": threshold},
        )
        performance = Performance(verdict, start, start, start, threshold, 0.0, False, None, "")  # type: ignore[arg-type]
        ranked = [Ranked(BY_ID[cause], p, (), ()) for cause, p in confidences.items()]
        told = {name: None for cause in BY_ID.values() for name in cause.evidence}
        return Diagnosis(readings, performance, told, ranked)

    return suspect
