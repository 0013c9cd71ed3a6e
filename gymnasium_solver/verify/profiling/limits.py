"""What limits throughput: floating-point work, dispatch, the environment or Python, each with what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]

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


SMALL = 0.3  # of the peak, below which more per operation would help more than fewer operations
WORKERS = {"update": "the update does", "act": "acting does"}
KINDS = {"floating point": ("act", "update"), "environment": ("step",), "Python": ("record", "write", "other")}


def limits_of(document: Document) -> list[dict[str, Any]]:
    """Shares of the time without compiling and evaluating, the largest first; calls and copies are `dispatch`."""
    seconds = {entry["phase"]: entry["seconds"] for entry in document["phases"]}
    dispatch = document["work"]["dispatch_seconds"]
    spent = {kind: sum(seconds[phase] for phase in phases) for kind, phases in KINDS.items()}
    dispatch = min(dispatch, spent["floating point"])
    spent["floating point"] -= dispatch
    spent["dispatch"] = dispatch + seconds["transfer"]
    whole = sum(spent.values())
    texts = {
        "floating point": floating_point(document["work"]),
        "environment": _environment(document),
        "dispatch": _dispatch(document["work"], seconds["transfer"] / whole),
        "Python": ", ".join(f"{NAMES[phase]} {percent(seconds[phase] / whole)}" for phase in KINDS["Python"]),
    }
    return [
        {"kind": kind, "share": spent[kind] / whole, "text": texts[kind]}
        for kind in sorted(spent, key=lambda kind: -spent[kind])
    ]


def floating_point(work: Document, phases: Sequence[str] = ("update", "act")) -> str:
    """What they do, against what this machine reaches."""
    done = {phase: work[phase] for phase in phases if work[phase]["gflops"]}
    if not done:
        return "no matrix products"
    rates = " and ".join(f"{WORKERS[phase]} {giga(part['gflops'])} GFLOP/s" for phase, part in done.items())
    shares = " and ".join(percent(part["of_peak"]) for part in done.values())
    cores = round(work["peak_cores"])
    who = f"{cores} cores reach" if cores > 1 else "one core reaches" if work["peak_cores"] else "the device reaches"
    return f"{rates}; {who} {giga(work['peak_gflops'])}: {shares} of the floating-point limit"


def _environment(document: Document) -> str:
    (step,) = (entry for entry in document["phases"] if entry["phase"] == "step")
    return f"{micro(step['us_per_env_step'])} per env step on {document['engine']}"


def _dispatch(work: Document, copies: float) -> str:
    calls = f"{work['calls_per_second']:,.0f} calls per second, {micro(work['empty_call_us'])} for an empty one"
    return f"{calls}; copies {percent(copies)}"


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
            text += f"{document['n_envs']} environments, {micro(document['work']['empty_call_us'])} of it for a call "
            text += f"that does nothing; {REMEDIES[phase]}"
        case "update":
            each = phases[phase]["seconds"] / max(1, document["gradient_steps"]) * 1e6
            text = f"learning: {of_time} is the update, {micro(each)} per gradient step, "
            text += f"{document['gradient_steps'] / document['env_steps']:.2g} gradient steps per env step; "
            text += f"{floating_point(document['work'], ['update'])}; "
            text += _change_of_learning(document["work"]["update"]["of_peak"], config)
        case "evaluate":
            text = f"evaluations: {of_time}, {config['eval_episodes']} episodes every "
            text += f"{document['evaluation']['every_epochs']} epochs; {REMEDIES[phase]}"
        case _:
            text = f"{NAMES[phase]}: {of_time}, {micro(cost)} per env step; {REMEDIES[phase]}"
    kind = "evaluation" if phase == "evaluate" else document["limits"][0]["kind"]
    return {"kind": kind, "phase": phase, "share": share, "text": text}


def _change_of_learning(of_peak: float, config: Mapping[str, Any]) -> str:
    if of_peak < SMALL and "batch_size" in config:
        return "its products are small: a larger batch_size gets more out of the processor, but learns differently"
    field = next((field for field in ("n_epochs", "update_to_data", "hidden_dims") if field in config), "n_steps")
    return f"a different {field} may be faster, but learns differently"


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


def micro(microseconds: float) -> str:
    return f"{microseconds:,.0f} µs" if microseconds >= 100 else f"{microseconds:.3g} µs"


def giga(gflops: float) -> str:
    return f"{gflops:.0f}" if gflops >= 10 else f"{gflops:.2g}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
