"""The history of a solve: as a document, as a page, and as the configuration that solved it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import yaml

from gymnasium_solver.config.load import build_config, load_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.plain import duration
from gymnasium_solver.recommend.recommendations import flag

if TYPE_CHECKING:
    from gymnasium_solver.verify.experiments.laboratory import Laboratory
    from gymnasium_solver.verify.experiments.solve import Attempt, Solution


def as_document(history: Solution, laboratory: Laboratory) -> dict[str, Any]:
    solved_by = history.solved_by
    solution = _solution(solved_by) if solved_by is not None else None
    return {
        "experiment": laboratory.path.name,
        "kind": "solve",
        "status": "solved" if solved_by is not None else "not solved",
        "env_id": history.env_id,
        "threshold": history.threshold,
        "aim": history.aim,
        "solved": solved_by is not None,
        "verdict": _verdict(history, laboratory),
        "solution": solution,
        "attempts": [_attempt(attempt) for attempt in history.attempts],
        "trainings": len(laboratory.trained),
        "duration_s": laboratory.budget.used_seconds,
        "path": str(laboratory.path),
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    trained, diagnosis = attempt.trained, attempt.diagnosis
    return {
        "number": attempt.number,
        "label": attempt.idea.label,
        "why": attempt.idea.why,
        "follows": attempt.idea.parent,
        "cause": attempt.idea.cause,
        "algo_id": attempt.idea.fields["algo_id"],
        "seed": attempt.idea.fields["seed"],
        "result": None if trained is None else asdict(trained),
        "run": None if trained is None else trained.run_id,
        "verdict": None if diagnosis is None else diagnosis.performance.verdict,
        "causes": []
        if diagnosis is None
        else [{"cause": entry.cause.id, "confidence": entry.confidence} for entry in diagnosis.ranked[:3]],
        "evaluation": attempt.evaluation,
    }


def _solution(attempt: Attempt) -> dict[str, Any]:
    assert attempt.trained is not None
    fields, env_id, algo_id = attempt.idea.fields, attempt.idea.fields["env_id"], attempt.idea.fields["algo_id"]
    from_variant = _changed(fields, load_config(f"{env_id}:{algo_id}"))
    settings = " ".join(f"--set {shlex.quote(f'{name}={flag(value)}')}" for name, value in from_variant.items())
    return {
        "attempt": attempt.number,
        "run": attempt.trained.run_id,
        "checkpoint": f"{attempt.trained.run_id}/@best",
        "evaluation": attempt.evaluation,
        "env_id": env_id,
        "algo_id": algo_id,
        "set": _changed(fields, build_config({"env_id": env_id, "algo_id": algo_id}, env_id)),
        "cli": f"gsolve train {env_id}:{algo_id} {settings}".rstrip(),
    }


def _changed(fields: Mapping[str, Any], usual: Config) -> dict[str, Any]:
    before = to_dict(usual)
    return {name: value for name, value in fields.items() if before.get(name) != value}


def _verdict(history: Solution, laboratory: Laboratory) -> str:
    tried, took = len(history.attempts), duration(laboratory.budget.used_seconds)
    tries = "1 training" if tried == 1 else f"{tried} trainings"
    if (found := history.solved_by) is not None:
        assert found.evaluation is not None and found.trained is not None
        low, high = found.evaluation["interval"]
        no_goal = "has no threshold; its best policy is above random play"
        word = "is solved" if history.threshold is not None else no_goal
        return (
            f"{history.env_id} {word}: mean return {found.evaluation['mean']:.4g} ({low:.4g} to {high:.4g}) over "
            f"{found.evaluation['episodes']} fresh episodes, by {found.idea.label} (training {found.number} of "
            f"{tries}, {took})"
        )
    best = max((one for one in history.attempts if one.trained), key=lambda one: one.closeness, default=None)
    reached = ""
    if best is not None and best.trained is not None and best.trained.best_reward is not None:
        reached = f"; the best reached {best.trained.best_reward:.4g}, by {best.idea.label}"
    ended = "the budget is spent" if laboratory.budget.is_spent else "nothing is left to try"
    return f"{history.env_id} is not solved after {tries} and {took}: {ended}{reached}"


def as_markdown(document: Mapping[str, Any]) -> str:
    lines = [f"# {document['verdict']}", "", f"Aim: {document['aim']}.", "", "## What was tried", ""]
    lines += ["| | configuration | why | result | diagnosis |", "|---:|---|---|---|---|"]
    lines += [_row(attempt) for attempt in document["attempts"]]
    solution = document["solution"]
    if solution:
        run = solution["run"]
        lines += [
            "",
            "## The solution",
            "",
            "```sh",
            solution["cli"],
            f"gsolve play {run}",
            f"gsolve score {run}",
            "```",
        ]
        lines += ["", "Only one seed was trained; more of them would show whether it was luck: add `--seeds 5`."]
    return "\n".join(lines) + "\n"


def _row(attempt: Mapping[str, Any]) -> str:
    result = attempt["result"]
    if result is None:
        brought = "not finished"
    elif result["error"]:
        brought = result["error"]
    else:
        best = "-" if result["best_reward"] is None else f"{result['best_reward']:.4g}"
        steps = f"{result['env_steps']:,} {CLOCKS[result['clock']].words}"
        brought = f"best {best} in {steps}, {duration(result['seconds'])} (`{attempt['run']}`)"
    if attempt["evaluation"]:
        brought += f"; fresh episodes {attempt['evaluation']['mean']:.4g}"
    causes = ", ".join(f"{one['cause']} {one['confidence']:.0%}" for one in attempt["causes"])
    found = f"{attempt['verdict']}{'; ' + causes if causes else ''}" if attempt["verdict"] else ""
    return f"| {attempt['number']} | {attempt['label']} | {attempt['why']} | {brought} | {found} |"


def solution_yaml(document: Mapping[str, Any]) -> str:
    """The configuration as config/environments/ takes it, with what it brought."""
    solution = document["solution"]
    fields = {name: value for name, value in solution["set"].items() if name not in ("env_id", "algo_id", "seed")}
    block = {"env_id": solution["env_id"], solution["algo_id"]: fields}
    return f"# {document['verdict']}\n" + yaml.safe_dump(block, sort_keys=False, default_flow_style=None)
