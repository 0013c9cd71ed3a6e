"""A profile in words: what limits throughput, and the whole document as Markdown that also reads in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]

BAR = 40  # characters of the longest bar
BUSY = 0.75  # cores' worth of processor time a second, below which the training had to wait for something

EXPLANATION = (
    "step: the environments; act: the policy's forward pass with its dispatch; transfer: copies between host and "
    "device; record: rows into the rollout or replay, minibatches out of it, statistics; write: rows, checkpoints and "
    "log; compile: waiting for the compiler, once per training."
)
NAMES = {"transfer": "copies between host and device", "record": "recording what was collected",
         "write": "writing files", "other": "what no phase covers"}  # fmt: skip

REMEDIES = {
    "step": "a faster engine or more cores help, a faster learner does not",
    "act": "a call costs about the same for more environments, so let more of them share it",
    "transfer": "fewer, larger calls help: more environments in each",
    "record": "the host does it at every step of all environments: more environments share it",
    "evaluate": "fewer (eval_freq_epochs, eval_episodes) cost detail in the curve and time to notice a solution",
    "write": "a larger checkpoint_freq_epochs, or a runs directory on a local disk, helps",
    "other": "nothing in the configuration changes it",
}


def limit_of(document: Document, config: Mapping[str, Any], trials: Sequence[Document]) -> dict[str, Any]:
    """The phase with the most time once all is compiled, in one sentence."""
    phases = {entry["phase"]: entry for entry in document["phases"] if entry["phase"] != "compile"}
    running = sum(entry["seconds"] for entry in phases.values())
    phase = max(phases, key=lambda name: phases[name]["seconds"])
    share, cost = phases[phase]["seconds"] / running, phases[phase]["us_per_env_step"]
    of_time = f"{percent(share)} of the time after compiling"
    match phase:
        case "step":
            text = f"the environment: {of_time} is its step on {document['engine']}, {micro(cost)} per env step; "
            text += _engines(document, trials) or REMEDIES[phase]
        case "act":
            text = f"acting: {of_time} is the policy, {micro(cost * document['n_envs'])} per call for "
            text += f"{document['n_envs']} environments; {REMEDIES[phase]}"
        case "update":
            each = phases[phase]["seconds"] / max(1, document["gradient_steps"]) * 1e6
            text = f"learning: {of_time} is the update, {micro(each)} per gradient step, "
            text += f"{document['gradient_steps'] / document['env_steps']:.2g} gradient steps per env step; "
            field = next(
                (field for field in ("n_epochs", "update_to_data", "hidden_dims") if field in config), "n_steps"
            )
            text += f"a different {field} may be faster, but learns differently"
        case "evaluate":
            text = f"evaluations: {of_time}, {config['eval_episodes']} episodes every "
            text += f"{document['evaluation']['every_epochs']} epochs; {REMEDIES[phase]}"
        case _:
            text = f"{NAMES[phase]}: {of_time}, {micro(cost)} per env step; {REMEDIES[phase]}"
    return {"phase": phase, "share": share, "text": text}


def _engines(document: Document, trials: Sequence[Document]) -> str:
    """What the trials say of other engines for as many environments."""
    pace = {trial["engine"]: trial["steps_per_second"] for trial in trials if trial["n_envs"] == document["n_envs"]}
    now = pace.pop(document["engine"], None)
    if now is None:
        return ""
    if not pace:
        return f"no other engine was available; {REMEDIES['step']}"
    best = max(pace, key=lambda engine: pace[engine])
    if pace[best] > 1.05 * now:
        return f"with {best} the training made {pace[best] / now:.2g} times the steps per second in one trial"
    return f"no other engine tried is faster ({', '.join(pace)})"


def to_markdown(document: Document, picture: str | None = None) -> str:
    parts = [
        f"# Profile of {document['env_id']} {document['algo_id']}",
        _summary(document),
        f"Limit: {document['limit']['text']}.",
        "## Time by phase",
        _block(_phase_lines(document)),
    ]
    parts += [f"![Time by phase, nested as the calls are]({picture})"] if picture else []
    parts += [EXPLANATION, _notes(document), "## Trials", _block(_trial_lines(document["trials"]))]
    if document["final"]:
        parts.append(_block(_final_lines(document["final"])))
    parts += ["## Recommendation", *_recommendation(document)]
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


def micro(microseconds: float) -> str:
    return f"{microseconds:,.0f} µs" if microseconds >= 100 else f"{microseconds:.3g} µs"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["```", *lines, "```"])
