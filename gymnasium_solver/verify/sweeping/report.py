"""What a sweep found: one document, its page with pictures, and the winner as a variant that can be used."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import writing
from gymnasium_solver.plain import number
from gymnasium_solver.runs.layout import REPORT, replace_file
from gymnasium_solver.verify.comparison.wording import setting
from gymnasium_solver.verify.objective import UNITS
from gymnasium_solver.verify.sweeping.confirmation import SHORT_UNITS, judged
from gymnasium_solver.verify.sweeping.plots import draw
from gymnasium_solver.verify.sweeping.studies import Aim, Study

BEST, CANDIDATE = "best.yaml", "candidate.yaml"  # a variant: shown to be better, and not shown to be so
SHOWN = 10  # trials in the table
# Fewer trials, or less than half of them, name the wrong field too often (with 20 trials over five fields, one of which
# matters, it comes out first in 37 of 40 searches; with the best tenth in place of the better half in 17).
FEWEST_FOR_IMPORTANCE, BETTER = 20, 0.5
BAR = 30
PLAIN_SCHEDULE = {"schedule": "linear", "warmup": 0.0, "from": 0.0, "to": 1.0}
EXPLAINED = (
    "How well each field separates the better half of the trials from the rest (PED-ANOVA; pruned trials "
    "count as the worst), within the ranges searched. With a few dozen trials it is a rough guide."
)


def best_trial(study: Study) -> Any | None:
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    choose = max if study.objective == "return" else min
    return choose(complete, key=lambda trial: trial.value, default=None)


def best_line(study: Study) -> str:
    best = best_trial(study)
    return "" if best is None else f"best {_value(study.objective, study.seeds, _row(best))} (trial {best.number})"


def trial_line(study: Study, index: int) -> str:
    row = _row(study.trials[index])
    what = row["error"] or (_value(study.objective, study.seeds, row) if row["outcome"] == "complete" else "")
    return f"trial {index}: {row['outcome']}{', ' if what else ''}{what}  ({_changes(row)})"


def _value(objective: str, seeds: int, row: Mapping[str, Any]) -> str:
    missed = seeds - row["solved"] if objective != "return" else 0
    if missed == seeds:
        return "missed"
    value = f"{number(row['value'])} {SHORT_UNITS[objective]}"
    return f"{missed} of {seeds} missed, {value}" if missed else value


def _changes(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {setting(value)}" for name, value in row["set"].items()) or "the unchanged config"


def _row(trial: Any) -> dict[str, Any]:
    told, state = trial.user_attrs, trial.state.name
    return {
        "number": trial.number,
        "outcome": told.get("outcome") or {"RUNNING": "running", "WAITING": "waiting"}.get(state, "interrupted"),
        "value": trial.value if state == "COMPLETE" else None,
        "solved": told.get("solved", 0),
        "set": told.get("set", {}),
        "params": dict(trial.params),
        "seconds": told.get("seconds"),
        "runs": told.get("runs", []),
        "error": told.get("error", ""),
    }


def document_of(study: Study, aim: Aim, base: Config, confirmation: Mapping[str, Any] | None) -> dict[str, Any]:
    trials = [_row(trial) for trial in study.trials]
    complete = [row for row in trials if row["outcome"] == "complete"]
    ranked = sorted(complete, key=lambda row: row["value"], reverse=not aim.is_minimised)
    checked = judged(aim, confirmation) if confirmation else None
    unchanged = next((row for row in ranked if not row["set"]), None)
    return {
        "name": study.name,
        "ref": study.ref,
        "overrides": list(study.overrides),
        "objective": aim.objective,
        "threshold": aim.threshold,
        "seeds": study.seeds,
        "directory": str(study.directory),
        "storage": study.storage or str(study.directory / "study.db"),
        "counts": dict(Counter(row["outcome"] for row in trials)),
        "base": unchanged,
        "best": _winner(study, base, ranked[0]) if ranked else None,
        "top": ranked[:SHOWN],
        "importance": _importance(study, aim),
        "confirmation": checked,
        "variant_file": _variant_file(ranked[0], checked) if ranked else None,
        "trials": trials,
    }


def _variant_file(best: Mapping[str, Any], confirmation: Mapping[str, Any] | None) -> str | None:
    """Only what fresh seeds show to be better is the best; what they show to be worse is not kept as a variant."""
    verdict = confirmation["verdict"] if confirmation else None
    if not best["set"] or verdict == "worse":
        return None
    return BEST if verdict == "better" else CANDIDATE


def _winner(study: Study, base: Config, row: Mapping[str, Any]) -> dict[str, Any]:
    env_id, _, variant = study.ref.rpartition(":")
    fields = to_dict(base)
    config = build_config(fields | row["set"], f"trial {row['number']}")
    words, flags = ["gsolve", "train", study.ref], _flags(fields, row["set"])
    found = {flag.partition("=")[0] for flag in flags}
    for override in (*(x for x in study.overrides if x.partition("=")[0].strip() not in found), *flags):
        words += ["-s", override]
    return {
        **row,
        "variant": f"{env_id}:{variant}_sweep",
        "yaml": _variant(config, f"{variant}_sweep"),
        "command": shlex.join(words),
    }


def _flags(base: Mapping[str, Any], changes: Mapping[str, Any]) -> list[str]:
    """FIELD=VALUE; of a schedule only what is changed in it."""
    flags = []
    for name, value in changes.items():
        known = base.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            flags += [f"{name}.{key}={json.dumps(new)}" for key, new in value.items() if new != known.get(key)]
        else:
            flags.append(f"{name}={json.dumps(value)}")
    return flags


def _variant(config: Config, name: str) -> str:
    """A file with this variant: what differs from the defaults of the algorithm."""
    usual = to_dict(build_config({"env_id": config.env_id, "algo_id": config.algo_id}, name))
    changed = {key: value for key, value in to_dict(config).items() if value != usual[key] and key != "seed"}
    for key, value in changed.items():
        if isinstance(value, Mapping) and "start" in value:
            changed[key] = {part: x for part, x in value.items() if x != PLAIN_SCHEDULE.get(part)}
    block = {"env_id": config.env_id, name: {"algo_id": config.algo_id, **changed}}
    return yaml.safe_dump(block, sort_keys=False, default_flow_style=None, allow_unicode=True)


def _importance(study: Study, aim: Aim) -> dict[str, float]:
    """Shares that add up to 1, largest first; empty with too few trials."""
    import optuna

    ended = [trial for trial in study.trials if trial.params and trial.state.name in ("COMPLETE", "PRUNED")]
    values = [trial.value for trial in ended if trial.state.name == "COMPLETE"]
    if len(ended) < FEWEST_FOR_IMPORTANCE or len(study.space) < 2 or len(set(values)) < 2:
        return {}
    # Optuna looks at complete trials alone, which leaves out the regions that pruning found to be bad.
    sign = 1 if aim.is_minimised else -1
    worse = max(sign * value for value in values) + 1
    ranked = optuna.create_study(direction="minimize")
    for trial in ended:
        value = sign * trial.value if trial.state.name == "COMPLETE" else worse
        ranked.add_trial(optuna.create_trial(params=trial.params, distributions=trial.distributions, value=value))
    better = min(BETTER, len(values) / len(ended))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=better)
    shares = optuna.importance.get_param_importances(ranked, evaluator=evaluator)
    return {name: float(share) for name, share in shares.items() if math.isfinite(share)}


def summary(document: Mapping[str, Any]) -> list[str]:
    """The result in a few paragraphs, for the terminal and the page."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in document["counts"].items())
    lines = [f"{document['ref']}, {UNITS[document['objective']]}; trials: {counts or 'none'}."]
    best, base, confirmation = document["best"], document["base"], document["confirmation"]
    if best is None:
        return [*lines, "No trial was completed."]
    found = _value(document["objective"], document["seeds"], best)
    if not best["set"]:
        return [*lines, f"Nothing better than the unchanged config was found ({found})."]
    against = "" if base is None else f", the unchanged config {_value(document['objective'], document['seeds'], base)}"
    lines.append(f"Best: trial {best['number']}, {found}{against}: {_changes(best)}.")
    complete = document["counts"]["complete"]
    biased = f"The best of {complete} trials looks better than it is, because it was chosen by this value"
    if confirmation is None:
        return [*lines, f"{biased}, and it was not checked on fresh seeds."]
    lines += [f"{biased}; fresh seeds do not have that flaw.", confirmation["sentence"]]
    if confirmation["verdict"] == "worse":
        return [*lines, f"Keep {document['ref']} as it is."]
    if confirmation["verdict"] != "better":
        lines.append(f"{document['ref']} stays; the trial is a candidate that more seeds may confirm.")
    return lines


def table(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Trial, value, solved, changes."""
    objective, seeds = document["objective"], document["seeds"]
    return [
        (str(row["number"]), _value(objective, seeds, row), f"{row['solved']}/{seeds}", _changes(row))
        for row in document["top"]
    ]


def bars(importance: Mapping[str, float]) -> list[str]:
    widest, most = max(map(len, importance), default=0), max(importance.values(), default=1.0) or 1.0
    return [f"{name:<{widest}}  {share:4.0%}  {'█' * round(BAR * share / most)}" for name, share in importance.items()]


def write(study: Study, document: Mapping[str, Any]) -> Path:
    """report.md, the pictures, and the variant if there is one to keep, in the sweep's directory."""
    directory, best = study.directory, document["best"]
    pictures = draw(study, document)
    parts = [f"# Sweep {document['name']}", *summary(document), *(f"![{name[:-4]}]({name})" for name in pictures)]
    if document["top"]:
        head = ["| trial | value | solved | changes |", "|---:|---:|---:|---|"]
        parts += ["## Best trials", "\n".join([*head, *(f"| {' | '.join(row)} |" for row in table(document))])]
    if document["importance"]:
        parts += ["## What mattered", "```\n" + "\n".join(bars(document["importance"])) + "\n```", EXPLAINED]
    file = document["variant_file"]
    if file:
        parts += [
            "## Use it" if file == BEST else "## The candidate, not shown to be better",
            f"```sh\n{best['command']}\n```",
            f"Or put this into `config/environments/` and train `{best['variant']}`:",
            f"```yaml\n{best['yaml']}```",
        ]
    parts.append(f"To continue: `gsolve sweep --resume {document['name']} --trials N`")
    with writing(directory):
        for name, picture in pictures.items():
            replace_file(directory / name, [picture])
        for name in {BEST, CANDIDATE} - {file}:  # of what was found before the sweep went on
            (directory / name).unlink(missing_ok=True)
        if file:
            replace_file(directory / file, [best["yaml"].encode()])
        replace_file(directory / REPORT, ["\n\n".join(parts).encode(), b"\n"])
    return directory / REPORT
