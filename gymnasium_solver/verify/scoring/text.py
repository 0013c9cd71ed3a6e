"""A score card as text and as YAML: the same content as its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from gymnasium_solver.plain import plain

SHARES = ("success rate", "spread over seeds", "transfer to similar tasks", "kept at")
VERDICTS = {"pass": "pass", "fail": "FAIL", "not measured": "not measured", "no target": ""}


def to_yaml(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(plain(document), sort_keys=False, allow_unicode=True, width=100)


def to_text(document: Mapping[str, Any]) -> str:
    seeds, measures = document["seeds"], document["measures"]
    lines = [
        f"Score card: {document['env_id']} {document['algo_id']}, checkpoint {document['checkpoint']}, "
        f"{document['episodes']} fresh episodes per seed ({', '.join(map(str, seeds))})",
        "",
        *_table([("MEASURE", "VALUE", "95 % INTERVAL", "TARGET", "VERDICT"), *map(_row, measures)]),
    ]
    lines += [_task(task) for measure in measures for task in measure["tasks"]]
    lines.append("")
    notes = [f"{measure['name']}: {measure['note']}{_seeds(measure)}." for measure in measures if measure["note"]]
    lines += [*notes, *(f"Note: {note}." for note in document["notes"]), ""]
    counts = (f"{document[key]} {word}" for key, word in
              (("passed", "met"), ("failed", "missed"), ("not_measured", "not measured")) if document[key])  # fmt: skip
    lines.append(f"Targets: {', '.join(counts)}.")
    return "\n".join(lines)


def _row(measure: Mapping[str, Any]) -> tuple[str, ...]:
    shown = [_shown(measure, measure[part]) for part in ("value", "low", "high")]
    interval = "" if shown[1] == shown[2] == "-" else f"{shown[1]} to {'no bound' if shown[2] == '-' else shown[2]}"
    verdict = VERDICTS[measure["verdict"]]
    if measure["certain"] is False:
        verdict += ", not certain: the interval includes the target"
    value = f"{shown[0]} {measure['unit']}".strip()
    return measure["name"], value, interval, measure["target"], verdict


def _task(task: Mapping[str, Any]) -> str:
    kept = f"{task['kept']:.0%} ({task['low']:.0%} to {task['high']:.0%}) kept"
    returns = f"return {task['return']:.4g}, {task['random_return']:.4g} at random"
    share = task["success_rate"]
    reached = "" if share is None else f"; {share:.0%} of the episodes at the threshold"
    return f"  on {task['task']}: {kept}, {returns}{reached}"


def _shown(measure: Mapping[str, Any], value: float | None) -> str:
    if value is None:
        return "-"
    if measure["name"].startswith(SHARES):
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"


def _seeds(measure: Mapping[str, Any]) -> str:
    found = measure["per_seed"]
    if len(found) < 2:
        return ""
    return f" (by seed: {', '.join(f'{seed}: {_shown(measure, value)}' for seed, value in found.items())})"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
