"""A diagnosis as text: the five sections, in the contract's order, as Markdown that reads well in a terminal too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.metrics.sparkline import sparkline

WIDTH = 24  # of a curve


def to_markdown(document: Mapping[str, Any]) -> str:
    unit = CLOCKS[document["summary"]["clock"]].unit
    sections = [
        _summary(document["summary"], unit),
        _metrics(document["metrics"], unit),
        _bottlenecks(document["bottlenecks"], document["summary"], unit),
        _recommendations(document["recommendations"], unit),
        _next_steps(document),
    ]
    if document.get("probes"):
        sections.insert(3, _probes(document["probes"]))
    if document["missing"]:
        sections.append("\n".join(["## Missing", "", *(f"- {line}" for line in document["missing"])]))
    return "\n\n".join(sections) + "\n"


def _summary(summary: Mapping[str, Any], unit: str) -> str:
    budget = f" of {_number(summary['budget'])}" if summary["budget"] else ""
    threshold = summary["threshold"]
    reward = f"best {_number(summary['best_reward'])}, last {_number(summary['last_reward'])}"
    if threshold is not None:
        reward += f", threshold {_number(threshold)}"
    if summary["gap"]:
        share = f" ({summary['gap_percent']:.0f} %)" if summary["gap_percent"] is not None else ""
        reward += f", short of it by {_number(summary['gap'])}{share}"
    lines = [
        "## Run summary",
        "",
        f"- run: {summary['run_id']}",
        f"- trained: {summary['env_id'] or 'unknown environment'} with {summary['algo_id'] or 'unknown algorithm'}, "
        f"{summary['status']}, {_number(summary['progress'])}{budget} {unit}",
        f"- reward: {reward}",
        f"- verdict: {summary['verdict']}",
        f"- efficiency: {summary['efficiency']}",
    ]
    if summary.get("error"):
        lines.append(f"- error: {summary['error']}")
    return "\n".join(lines)


def _metrics(metrics: Mapping[str, Any], unit: str) -> str:
    if not metrics:
        return "## Key metrics\n\nNone were logged."
    width = max(len(name) for name in metrics)
    lines = ["## Key metrics", "", "```"]
    for name, curve in metrics.items():
        notes = [curve["shape"]]
        if curve.get("in_range") is False:
            notes.append(f"outside {_range(curve['range'])}")
        if "change_point" in curve:
            notes.append(f"changes at {_number(curve['change_point']['step'])} {unit}")
        if "spikes" in curve:
            notes.append(f"{curve['spikes']['count']} spikes from {_number(curve['spikes']['first_step'])} {unit}")
        if "non_finite_from" in curve:
            notes.append(f"not finite from {_number(curve['non_finite_from'])} {unit}")
        drawn = sparkline(curve["points"], WIDTH)
        lines.append(f"{name:<{width}}  {_number(curve['last']):>9}  {drawn:<{WIDTH}}  {'; '.join(notes)}")
    return "\n".join([*lines, "```"])


def _bottlenecks(bottlenecks: list[Mapping[str, Any]], summary: Mapping[str, Any], unit: str) -> str:
    if not bottlenecks:
        nothing = "None found." if summary["solved"] else "None that the run gives evidence for."
        return f"## Diagnosed bottlenecks\n\n{nothing}"
    lines = ["## Diagnosed bottlenecks"]
    for place, found in enumerate(bottlenecks):
        rank = "Primary" if place == 0 else f"{place + 1}"
        lines += [
            "",
            f"{rank}: {found['title']}  [{found['cause']}]",
            f"  {found['severity']}, {found['category']}, {found['confidence']:.0%} sure",
            f"  why: {found['root_cause']}",
        ]
        lines += [f"  for: {_evidence(entry, unit)}" for entry in found["evidence"][:5]]
        lines += [f"  against: {_evidence(entry, unit)}" for entry in found["against"][:2]]
        if "tied_with" in found:
            lines.append(f"  cannot be told from: {', '.join(found['tied_with'])}")
        if "where" in found and place == 0:
            lines.append(f"  where to look: {found['where']}")
    return "\n".join(lines)


def _evidence(entry: Mapping[str, Any], unit: str) -> str:
    value = "" if entry["value"] is None else f": {_number(entry['value'])}"
    since = "" if entry["step"] is None else f" from {_number(entry['step'])} {unit}"
    return f"{entry['text']} ({entry['metric']}{value}{since}; expected {entry['expected']})"


def _recommendations(recommendations: list[Mapping[str, Any]], unit: str) -> str:
    if not recommendations:
        return "## Recommendations\n\nNothing to change."
    lines = ["## Recommendations"]
    for place, entry in enumerate(recommendations, 1):
        lines += ["", f"{place}. {entry['priority']}: {_headline(entry)}", "", f"   why: {entry['rationale']}"]
        impact = entry["expected_impact"]
        if impact["mid"] is not None or impact["low"] is not None:
            ends = [_number(impact[key]) if impact[key] is not None else "not reached" for key in ("low", "high")]
            middle = "" if impact["mid"] is None else f"about {_number(impact['mid'])} {unit}, "
            lines.append(
                f"   expected: threshold after {middle}80 % between {ends[0]} and {ends[1]} ({impact['source']})"
            )
        else:
            lines.append(f"   expected: {impact['source']}")
        lines.append(f"   risk: {entry['risk']}")
        if entry["yaml"]:
            lines += ["", "```yaml", entry["yaml"].rstrip(), "```"]
        if entry["yaml"] and entry["cli"]:
            lines += ["", "```sh", entry["cli"], "```"]
        lines += [f"   in the source library: {line}" for line in entry.get("translated", ())]
    return "\n".join(lines)


def _probes(outcomes: list[Mapping[str, Any]]) -> str:
    lines = ["What experiments settled:", ""]
    for outcome in outcomes:
        lines += [f"- {outcome['probe']}: {outcome['verdict']}", f"  {outcome['evidence']}"]
    return "\n".join(lines)


def _headline(entry: Mapping[str, Any]) -> str:
    if not entry["set"]:
        return f"mend what causes {entry['cause']}; no setting does"
    return "set " + ", ".join(f"{name} to {_setting(value)}" for name, value in entry["set"].items())


def _setting(value: Any) -> str:
    if isinstance(value, Mapping) and "start" in value:
        return f"{value['start']:g} → {value.get('end', 0):g}"
    return "null" if value is None else str(value)


def _next_steps(document: Mapping[str, Any]) -> str:
    lines = ["## Next steps", "", *(f"- {step}" for step in document["next_steps"] or ["nothing to do"])]
    outlook = document["outlook"]
    if outlook:
        lines += [f"- because {reason}" for reason in outlook["reasons"]]
    return "\n".join(lines)


def _range(bounds: list[float | None]) -> str:
    low, high = bounds
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
