"""What makes a comparison unequal or unsure, each in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gymnasium_solver.plain import listed, number
from gymnasium_solver.verify.comparison.measures import Measures
from gymnasium_solver.verify.comparison.runs import EVALUATION, TRAINING
from gymnasium_solver.verify.comparison.sides import Side

UNKNOWN = "not known"
OTHER_TASK = ("env_kwargs", "env_wrappers", "max_episode_steps", "frame_skip")
OTHER_MEASUREMENT = ("eval_freq_epochs", "eval_episodes", "eval_deterministic", "stop_when_solved")


def caveats(sides: Sequence[Side], measures: Measures, group_by: str | None) -> list[str]:
    return [
        *_unequal(sides, measures),
        *(sentence for side in sides for sentence in _of_side(side, group_by)),
        *_unknown_environment(sides),
    ]


def _unequal(sides: Sequence[Side], measures: Measures) -> list[str]:
    found = []

    def differ(what: str, values: list[str], remark: str) -> None:
        if len({*values} - {UNKNOWN}) > 1:
            pairs = ", ".join(f"{side.label} {value}" for side, value in zip(sides, values, strict=True))
            found.append(f"{what} differ ({pairs}){remark}.")

    def settings(name: str) -> list[str]:
        """What a run of another library does not tell counts neither way."""
        return [side.written(name) or UNKNOWN for side in sides]

    differ("Budgets", settings(measures.clock.budget), ": the comparison is unequal")
    differ("Seeds", [_seeds(side) for side in sides], "")
    thresholds = [" or ".join(sorted({number(run.summary["threshold"]) for run in side.runs})) for side in sides]
    differ("Thresholds", thresholds, f": all runs are held to {number(measures.threshold)}")
    for name in OTHER_TASK:
        differ(f"Values of {name}", settings(name), ": the task is not the same")
    for name in OTHER_MEASUREMENT:
        differ(f"Values of {name}", settings(name), ": results were measured differently")
    libraries = [side.runs[0].library or "gymnasium-solver" for side in sides]
    differ("Libraries", libraries, ": they may average rewards and count seconds differently")
    evaluated = [any(run.curve(EVALUATION)[0].size for run in side.runs) for side in sides]
    if measures.curve == TRAINING and any(evaluated):
        without = listed([side.title for side, has in zip(sides, evaluated, strict=True) if not has])
        found.append(f"No evaluations of {without}: all runs are compared by training episodes, which lag behind.")
    return found


def _seeds(side: Side) -> str:
    return listed([str(seed) for seed in sorted(run.seed for run in side.runs if run.seed is not None)], 10) or UNKNOWN


def _of_side(side: Side, group_by: str | None) -> list[str]:
    found = []
    if side.repeated:
        ids = listed([run.run_id for run in side.repeated])
        found.append(f"{side.title}: {ids} repeats a seed with the same settings and does not count again.")
    if group_by and (mixed := side.mixed_fields()):
        found.append(f"{side.title} mixes runs that differ in {listed(mixed)}.")
    for state, count in Counter(run.summary["status"] for run in side.runs).items():
        some = f"{side.title}: {count} of {len(side.runs)} runs"
        if state == "running":
            found.append(f"{some} still running; the figures will change.")
        elif state in ("failed", "interrupted"):
            found.append(f"{some} {state}; what they reached counts.")
    if empty := [run.run_id for run in side.runs if not run.trained]:
        found.append(f"{side.title}: no data yet from {listed(empty)}, left out of the figures.")
    return found


def _unknown_environment(sides: Sequence[Side]) -> list[str]:
    unknown = [side.title for side in sides if side.config.get("env_id") is None]
    if not unknown:
        return []
    return [f"The environment of {listed(unknown)} is not known; gsolve import PATH --env ENV_ID sets it."]
