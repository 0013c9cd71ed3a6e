"""A profile as Markdown that also reads in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium_solver.verify.profiling.limits import percent

Document = Mapping[str, Any]

BAR = 40  # characters of the longest bar
BUSY = 0.75  # cores' worth of processor time a second, below which the training had to wait for something

EXPLANATION = (
    "step: the environments; act: the policy's forward pass with its dispatch; transfer: copies between host and "
    "device; record: rows into the rollout or replay, minibatches out of it, statistics; write: rows, checkpoints and "
    "log; compile: waiting for the compiler, once per training."
)


def to_markdown(document: Document, picture: str | None = None) -> str:
    parts = [
        f"# Profile of {document['env_id']} {document['algo_id']}",
        _summary(document),
        f"Limit: {document['limit']['text']}.",
        "## Time by phase",
        _block(_phase_lines(document)),
    ]
    parts += [f"![Time by phase, nested as the calls are]({picture})"] if picture else []
    parts += [EXPLANATION, _parts_alone(document), "## Limits", _block(_limit_lines(document["limits"]))]
    parts += [_notes(document), "## Trials", _block(_trial_lines(document["trials"]))]
    if document["final"]:
        parts.append(_block(_final_lines(document["final"])))
    parts += ["## Recommendation", *_recommendation(document), *_threads(document["threads"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(document: Document) -> str:
    device = document["device_memory_mb"]
    return (
        f"{document['engine']}, {document['n_envs']} environments × {document['n_steps']} steps: "
        f"{document['env_steps']:,} env steps in {document['seconds']:.1f} s, "
        f"{document['steps_per_second']:,.0f} steps/s without compiling and evaluating; "
        f"{document['cores_used']:.1f} of {document['cores']} cores used, "
        f"peak memory {document['peak_memory_mb']:,.0f} MB" + (f", {device:,.0f} MB on the device." if device else ".")
    )


def _phase_lines(document: Document) -> list[str]:
    most = max(entry["share"] for entry in document["phases"])
    lines = [f"{'phase':9} {'seconds':>8} {'share':>6} {'µs/env step':>12}"]
    for entry in document["phases"]:
        bar = "█" * round(BAR * entry["share"] / most)
        numbers = f"{entry['seconds']:8.2f} {percent(entry['share']):>6} {entry['us_per_env_step']:12.2f}"
        lines.append(f"{entry['phase']:9} {numbers}  {bar}".rstrip())
    return lines


def _parts_alone(document: Document) -> str:
    share = document["work"]["parts_add_up_to"]
    if share is None:
        return ""
    return (
        "Rollouts and updates are one call here. Its time is divided by what environments, acting and updating take "
        f"when each is compiled alone; together that is {percent(share)} of the call."
    )


def _limit_lines(limits: Sequence[Document]) -> list[str]:
    return [f"{limit['kind']:15} {percent(limit['share']):>6}  {limit['text']}" for limit in limits]


def _notes(document: Document) -> str:
    notes = list(document["notes"])
    evaluation = document["evaluation"]
    if not evaluation["was_due"]:
        least = "" if evaluation["is_whole"] else "at least "
        notes.append(
            f"no evaluation was due in {document['epochs']:,} epochs (one every {evaluation['every_epochs']:,}); one "
            f"takes {least}{evaluation['seconds']:.2g} s this early in training, {least}"
            f"{percent(evaluation['share'])} of the time"
        )
    if document["cores_used"] < BUSY:
        notes.append(
            f"the training got {document['cores_used']:.2f} of a core: other programs keep the machine busy (load "
            f"{document['load']:.1f}), or the environment waits"
        )
    return "\n".join(f"- {note}" for note in notes)


def _trial_lines(trials: Sequence[Document]) -> list[str]:
    heading = f"{'engine':17} {'n_envs':>6} {'n_steps':>7} {'steps/s':>9}  per 1,000 env steps"
    return [heading] + [
        f"{trial['engine']:17} {trial['n_envs']:6} {trial['n_steps']:7} {trial['steps_per_second']:9,.0f}  "
        f"{trial['updates_per_1000_steps']:.3g} updates, {trial['gradient_steps_per_1000_steps']:.3g} gradient steps"
        + (" (current)" if trial["is_current"] else "")
        for trial in trials
    ]


def _final_lines(final: Document) -> list[str]:
    """Turn by turn."""
    sides = {side: final[side]["steps_per_second"] for side in ("current", "challenger")}
    lines = [f"{side:10} {' '.join(f'{pace:9,.0f}' for pace in paces)} steps/s" for side, paces in sides.items()]
    gains = [then / now for now, then in zip(*sides.values(), strict=True)]
    lines.append(f"{'ratio':10} {' '.join(f'{gain:9.2f}' for gain in gains)}")
    return [f"in turns, challenger: {final['challenger']['name']}", *lines]


def _recommendation(document: Document) -> list[str]:
    found = document["recommendation"]
    if found is None:
        return [f"{document['verdict']}."]
    return [
        f"{document['verdict']}.",
        f"```yaml\n{found['yaml'].rstrip()}\n```",
        f"    {found['cli']}",
        f"What it does to learning: {found['effect_on_learning']}. Steps per second are not learning speed: compare "
        "the returns over seeds before you keep it.",
    ]


def _threads(threads: Document | None) -> list[str]:
    if threads is None:
        return []
    pace = threads["steps_per_second"]
    sides = {"1 thread": pace["one"], f"{threads['cores']} threads": pace["all"]}
    return [
        "## Threads",
        _block([f"{side:10} {' '.join(f'{pace:9,.0f}' for pace in paces)} steps/s" for side, paces in sides.items()]),
        f"{threads['verdict']}.",
    ]


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["```", *lines, "```"])
