"""The scores as a page of Markdown."""

from __future__ import annotations

from typing import Any

from faults.intervals import Estimate

_LINES = (
    ("fix_advice", "fixed by the first recommendation", "≥ 80 %"),
    ("fix_defaults", "fixed by a reset to the defaults", ""),
    ("fix_random", "fixed by a random change", ""),
    ("fix_config_advice", "of faults that a setting can fix: fixed by the first recommendation", ""),
    ("fix_config_defaults", "the same, by a reset to the defaults", ""),
    ("fix_config_random", "the same, by a random change", ""),
    ("fix_hidden", "fixed, hyperparameters hidden", ""),
    ("harm", "made worse by the first recommendation, healthy runs included", "≤ 3 %"),
    ("harm_defaults", "made worse by a reset to the defaults", ""),
    ("harm_random", "made worse by a random change", ""),
    ("top1", "cause class named first", "≥ 80 %"),
    ("top3", "cause class among the first three", "≥ 95 %"),
    ("top1_hidden", "cause class named first, hyperparameters hidden", ""),
    ("critical_on_quiet", "critical findings on healthy and harmless runs", "≤ 2 %"),
    ("impact_covered", "80 % impact interval holds the outcome", "70 to 90 %"),
)


def shown(value: Any) -> str:
    if value is None:
        return "not measured"
    return str(value) if isinstance(value, Estimate) else f"{value:.3f}"


def render(document: dict[str, Any]) -> str:
    summary = document["summary"]
    lines = [
        f"# Fault benchmark, {document['split']} split",
        "",
        f"{summary['biting']} faults that bite, {summary['quiet']} healthy or harmless cases, three seeds each; in",
        "parentheses the 95 % bootstrap interval over cases. Written by `python benchmarks/faults/run.py score`.",
        "",
        "| measure | value | target |",
        "|---|---|---|",
        *(f"| {label} | {shown(summary.get(name))} | {target} |" for name, label, target in _LINES),
        f"| calibration error of the confidence (ECE) | {shown(summary['calibration_error'])} | ≤ 0.1 |",
        "",
        "| information | first | among three |",
        "|---|---|---|",
        *(f"| {name} | {shown(v['top1'])} | {shown(v['top3'])} |" for name, v in document["information"].items()),
        "",
        "| case | cause | clean | broken | advice | fixed | defaults | random | found first |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_case_line(row) for row in document["cases"] if row["bites"]),
        "",
        "| healthy or harmless case | score | with the advice | critical | found first |",
        "|---|---|---|---|---|",
        *(_quiet_line(row) for row in document["cases"] if not row["bites"]),
    ]
    return "\n".join(lines) + "\n"


def _case_line(row: dict[str, Any]) -> str:
    return (
        f"| {row['case']} | {row['cause']} | {row['clean']:.2f} | {row['before']:.2f} | {row['advice']['after']:.2f} "
        f"| {'yes' if row['advice']['fixed'] else 'no'} | {row['defaults']['after']:.2f} "
        f"| {row['random']['after']:.2f} | {_first(row)} |"
    )


def _quiet_line(row: dict[str, Any]) -> str:
    return (
        f"| {row['case']} | {row['before']:.2f} | {row['advice']['after']:.2f} | {sum(row['critical'])} of "
        f"{len(row['critical'])} | {_first(row)} |"
    )


def _first(row: dict[str, Any]) -> str:
    return ", ".join(dict.fromkeys(found[0] if found else "none" for found in row["found"]))
