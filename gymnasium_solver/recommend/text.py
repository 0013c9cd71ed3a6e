"""A diagnosis as Markdown: the five sections, in the contract's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.metrics.sparkline import sparkline

WIDTH = 24  # of a curve


def to_markdown(document: Mapping[str, Any]) -> str:
    sections = [
        _section("Run summary", _list(summary_lines(document["summary"]))),
        _section("Key metrics", _metrics(document["metrics"])),
        _section("Diagnosed bottlenecks", _bottlenecks(document)),
        _section("Recommendations", _recommendations(document["recommendations"])),
        _section("Next steps", _list((None, line) for line in next_steps(document))),
    ]
    if document.get("probes"):
        found = ((outcome["probe"], f"{outcome['verdict']} ({outcome['evidence']})") for outcome in document["probes"])
        sections.insert(3, _section("What experiments settled", _list(found)))
    if document["missing"]:
        sections.append(_section("Missing", _list((None, line) for line in document["missing"])))
    return "\n\n".join(sections) + "\n"


def summary_lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    budget = f" of {number(summary['max_env_steps'])}" if summary["max_env_steps"] else ""
    trained = f"{summary['env_id'] or 'unknown environment'} with {summary['algo_id'] or 'unknown algorithm'}"
    lines = [
        ("run", summary["run_id"]),
        ("trained", f"{trained}, {summary['status']}, {number(summary['env_steps'])}{budget} steps"),
        ("reward", _reward(summary)),
        ("verdict", summary["verdict"]),
        ("efficiency", summary["efficiency"]),
    ]
    return [*lines, ("error", summary["error"])] if summary.get("error") else lines


def _reward(summary: Mapping[str, Any]) -> str:
    text = f"best {number(summary['best_reward'])}, last {number(summary['last_reward'])}"
    if summary["threshold"] is not None:
        text += f", threshold {number(summary['threshold'])}"
    if summary["gap"]:
        share = f" ({summary['gap_percent']:.0f} %)" if summary["gap_percent"] is not None else ""
        text += f", short of it by {number(summary['gap'])}{share}"
    return text


def curve_notes(curve: Mapping[str, Any]) -> str:
    """The shape of a curve in words, and what is odd about it."""
    notes = [curve["shape"]]
    if curve.get("in_range") is False:
        notes.append(f"outside {_range(curve['range'])}")
    if "change_point" in curve:
        notes.append(f"changes at {number(curve['change_point']['step'])} steps")
    if "spikes" in curve:
        notes.append(f"{curve['spikes']['count']} spikes from {number(curve['spikes']['first_step'])} steps")
    if "non_finite_from" in curve:
        notes.append(f"not finite from {number(curve['non_finite_from'])} steps")
    return "; ".join(notes)


def _metrics(metrics: Mapping[str, Any]) -> str:
    if not metrics:
        return "None were logged."
    width = max(len(name) for name in metrics)
    lines = (
        f"{name:<{width}}  {number(curve['last']):>9}  {sparkline(curve['points'], WIDTH):<{WIDTH}}  {curve_notes(curve)}"
        for name, curve in metrics.items()
    )
    return "\n".join(["```", *lines, "```"])


def bottleneck_title(place: int, found: Mapping[str, Any]) -> str:
    return f"{'Primary' if place == 0 else place + 1}: {found['title']}  [{found['cause']}]"


def bottleneck_lines(place: int, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("severity", f"{found['severity']}, {found['category']}, {found['confidence']:.0%} sure"),
        ("why", found["root_cause"]),
        *(("for", _evidence(entry)) for entry in found["evidence"][:5]),
        *(("against", _evidence(entry)) for entry in found["against"][:2]),
    ]
    if "tied_with" in found:
        lines.append(("cannot be told from", ", ".join(found["tied_with"])))
    if "where" in found and place == 0:
        lines.append(("where to look", found["where"]))
    return lines


def no_bottleneck(summary: Mapping[str, Any]) -> str:
    return "None found." if summary["solved"] else "None that the run gives evidence for."


def _bottlenecks(document: Mapping[str, Any]) -> str:
    blocks = [
        f"{bottleneck_title(place, found)}\n\n{_list(bottleneck_lines(place, found))}"
        for place, found in enumerate(document["bottlenecks"])
    ]
    return "\n\n".join(blocks) or no_bottleneck(document["summary"])


def _evidence(entry: Mapping[str, Any]) -> str:
    value = "" if entry["value"] is None else f": {number(entry['value'])}"
    since = "" if entry["step"] is None else f" from {number(entry['step'])} steps"
    return f"{entry['text']} ({entry['metric']}{value}{since}; expected {entry['expected']})"


def recommendation_title(place: int, entry: Mapping[str, Any]) -> str:
    return f"{place + 1}. {entry['priority']}: {change_in_words(entry)}"


def change_in_words(entry: Mapping[str, Any]) -> str:
    if not entry["set"]:
        return f"fix what causes {entry['cause']}; no setting does"
    return "set " + ", ".join(f"{name} to {_setting(value)}" for name, value in entry["set"].items())


def recommendation_lines(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [("why", entry["rationale"]), ("expected", expected(entry["expected_impact"])), ("risk", entry["risk"])]
    return lines + [("in the source library", line) for line in entry.get("translated", ())]


def expected(impact: Mapping[str, Any]) -> str:
    if impact["mid"] is None and impact["low"] is None:
        return str(impact["source"])
    low, high = (number(impact[key]) if impact[key] is not None else "not reached" for key in ("low", "high"))
    middle = "" if impact["mid"] is None else f"about {number(impact['mid'])} steps, "
    return f"threshold after {middle}80 % between {low} and {high} ({impact['source']})"


def _recommendations(recommendations: list[Mapping[str, Any]]) -> str:
    blocks = []
    for place, entry in enumerate(recommendations):
        block = f"### {recommendation_title(place, entry)}\n\n{_list(recommendation_lines(entry))}"
        if entry["yaml"]:
            block += f"\n\n```yaml\n{entry['yaml'].rstrip()}\n```"
        if entry["yaml"] and entry["cli"]:
            block += f"\n\n```sh\n{entry['cli']}\n```"
        blocks.append(block)
    return "\n\n".join(blocks) or "Nothing to change."


def next_steps(document: Mapping[str, Any]) -> list[str]:
    reasons = document["outlook"]["reasons"] if document["outlook"] else []
    return [*(document["next_steps"] or ["nothing to do"]), *(f"because {reason}" for reason in reasons)]


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}"


def _list(lines: Any) -> str:
    return "\n".join(f"- {text}" if label is None else f"- {label}: {text}" for label, text in lines)


def _setting(value: Any) -> str:
    if isinstance(value, Mapping) and "start" in value:
        return f"{value['start']:g} → {value.get('end', 0):g}"
    return "null" if value is None else str(value)


def _range(bounds: list[float | None]) -> str:
    low, high = bounds
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
