"""What is re-trained on fresh seeds: the advice, and beside it a reset to the defaults and a change at random."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from faults.cases import SEEDS, UNDO, Case
from faults.training import Task
from gymnasium_solver.config.defaults import default_fields
from gymnasium_solver.config.load import to_dict
from gymnasium_solver.errors import SolverError

Document = dict[str, Any]
POLICIES = ("advice", "defaults", "random")

# The task itself, its budget and how it is measured: no reset touches these.
_KEPT = (
    *("env_id", "algo_id", "seed", "max_env_steps", "reward_threshold", "stop_when_solved", "engine", "vectorization"),
    *("env_kwargs", "env_wrappers", "max_episode_steps", "frame_skip", "frame_stack", "eval_freq_epochs"),
    *("eval_episodes", "eval_deterministic", "checkpoint_freq_epochs"),
)


def top_cause(document: Document) -> str | None:
    """What the first piece of advice answers; without advice, the primary bottleneck."""
    for part in ("recommendations", "bottlenecks"):
        if document.get(part):
            return str(document[part][0]["cause"])
    return None


def advised(document: Document) -> dict[str, Any]:
    recommendations = document.get("recommendations") or []
    return dict(recommendations[0].get("set") or {}) if recommendations else {}


def advice_tasks(case: Case, documents: Sequence[Document]) -> list[Task | None]:
    """One a diagnosed seed, each on a fresh one. None where the advice changes nothing, or nothing valid."""
    tasks: list[Task | None] = []
    for document, seed in zip(documents, SEEDS["fresh"], strict=True):
        changes = advised(document)
        if case.fix == UNDO and top_cause(document) in case.causes:
            tasks.append(Task(f"{case.reference.name}.clean", seed))  # fixed as the finding says
        elif changes and _is_valid(case, changes):
            tasks.append(Task(case.name, seed, _label("advice", changes), changes, top_cause(document)))
        else:
            tasks.append(None)
    return tasks


def default_tasks(case: Case) -> list[Task | None]:
    changes = reset(case)
    if not _is_valid(case, changes):
        return [None] * len(SEEDS["fresh"])
    return [Task(case.name, seed, _label("defaults", changes), changes) for seed in SEEDS["fresh"]]


def random_tasks(case: Case, pool: Sequence[Mapping[str, Any]]) -> list[Task | None]:
    """A change that was advised for another case of the same algorithm, drawn by the case's name."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    order = [pool[i] for i in rng.permutation(len(pool))]
    changes = next((dict(change) for change in order if _is_valid(case, change)), None)
    if changes is None:
        return [None] * len(SEEDS["fresh"])
    return [Task(case.name, seed, _label("random", changes), changes) for seed in SEEDS["fresh"]]


def reset(case: Case) -> dict[str, Any]:
    """Every field but those of the task back to what gsolve would choose for this environment and algorithm."""
    config = case.config(0)
    chosen = default_fields(case.reference.env_id, case.reference.algo_id)
    changes: dict[str, Any] = {}
    for name, info in type(config).model_fields.items():
        if name not in _KEPT and not info.is_required():
            changes[name] = chosen.get(name, info.get_default(call_default_factory=True))
    if not _is_valid(case, changes):
        return changes
    before, after = to_dict(config), to_dict(case.config(0, changes))
    return {name: after[name] for name in changes if after[name] != before[name]}


def _is_valid(case: Case, changes: Mapping[str, Any]) -> bool:
    try:
        case.config(0, changes)
    except SolverError:
        return False
    return True


def _label(policy: str, changes: Mapping[str, Any]) -> str:
    """Another change gets another name, so that a run on record is only ever taken for what it was."""
    text = repr(sorted((name, repr(value)) for name, value in changes.items()))
    return f"{policy}-{zlib.crc32(text.encode()):08x}"
