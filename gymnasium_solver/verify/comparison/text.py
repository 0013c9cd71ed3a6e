"""A comparison for people: sections of sentences and tables, which the terminal and Markdown show each in their way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gymnasium_solver.metrics.clocks import CLOCKS, Clock
from gymnasium_solver.metrics.sparkline import BLOCKS
from gymnasium_solver.plain import number
from gymnasium_solver.statistics import FEWEST
from gymnasium_solver.verify.comparison.course import PHASES
from gymnasium_solver.verify.comparison.document import DOES_NOT_APPLY, NOT_KNOWN
from gymnasium_solver.verify.comparison.wording import interval, steps

WIDTH = 24  # of a curve drawn in a line
TERMS = ("policy", "value", "entropy")

Document = Mapping[str, Any]
Row = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    title: str
    columns: Row = ()
    rows: Sequence[Row] = ()
    notes: Sequence[str] = ()  # sentences below the table


def sections(document: Document) -> list[Section]:
    """Those that have anything to show."""
    found = [
        Section("Verdict", notes=[document["verdict"]["text"]]),
        Section("Caveats", notes=list(document["caveats"])),
        _sides(document),
        _results(document),
        _seeds(document),
        _differences(document),
        _derived(document),
        _losses(document),
        _gradients(document),
        _schedules(document),
        Section("Not recorded", notes=list(document["missing"])),
    ]
    return [section for section in found if section.rows or section.notes]


def heading(document: Document) -> str:
    names = [f"{side['label']} ({side['name']})" for side in document["sides"]]
    return f"{document['env_id'] or 'unknown environment'}: {' against '.join(names[:3])}" + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )


def to_markdown(document: Document, pictures: Sequence[str] = ()) -> str:
    lines = [f"# {heading(document)}", ""]
    for section in sections(document):
        lines += [f"## {section.title}", ""]
        if section.rows:
            lines += [_line(section.columns), _line(("---",) * len(section.columns)), *map(_line, section.rows), ""]
        bullets = len(section.notes) > 1 or section.rows
        lines += [f"- {note}" if bullets else note for note in section.notes]
        lines += [""] if section.notes else []
    lines += [f"![{name.removesuffix('.png')}]({name})\n" for name in pictures]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _clock(document: Document) -> Clock:
    return CLOCKS[document["measures"]["clock"]]


def _labels(document: Document) -> list[str]:
    return [side["label"] for side in document["sides"]]


def _sides(document: Document) -> Section:
    ends = [value for side in document["sides"] for value in side["curve"]["iqm"]]
    drawn = _drawn({side["label"]: (side["curve"]["steps"], side["curve"]["iqm"]) for side in document["sides"]})
    rows = [
        (
            side["label"]
            + (" (baseline)" if side["label"] == document["baseline"] and len(document["sides"]) > 1 else ""),
            side["name"],
            ", ".join(_seed(run) for run in side["runs"][:6]) + (" …" if len(side["runs"]) > 6 else ""),
            drawn[side["label"]],
        )
        for side in document["sides"]
    ]
    note = []
    if ends:
        last = max(side["curve"]["steps"][-1] for side in document["sides"] if side["curve"]["steps"])
        span = f"0 to {number(last)} {_clock(document).words}"
        note = [f"Curve: {document['measures']['curve']}, {span}, {number(min(ends))} to {number(max(ends))}; a run "
                "that ended solved is held at its last value."]  # fmt: skip
    return Section("Sides", ("SIDE", "NAME", "SEEDS", "CURVE"), rows, note)


def _seed(run: Document) -> str:
    return "?" if run["seed"] is None else str(run["seed"])


def _drawn(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> dict[str, str]:
    """Side → its curve in blocks; steps and values are on scales that all sides share."""
    steps = [step for at, _ in curves.values() for step in at]
    values = [value for _, found in curves.values() for value in found]
    if not steps:
        return dict.fromkeys(curves, "")
    low, span, cell = min(values), (max(values) - min(values)) or 1.0, max(steps) / WIDTH
    middles = (np.arange(WIDTH) + 0.5) * cell
    drawn = {}
    for label, (at, found) in curves.items():
        shown = [at[0] - cell / 2 <= middle <= at[-1] + cell / 2 for middle in middles] if at else []
        heights = np.interp(middles, at, found) if at else []
        blocks = (BLOCKS[min(int((height - low) / span * 8), 7)] for height in heights)
        drawn[label] = "".join(block if there else " " for there, block in zip(shown, blocks, strict=True)).rstrip()
    return drawn


def _results(document: Document) -> Section:
    measures, results = document["measures"], [side["results"] for side in document["sides"]]
    goal, unit = number(measures["threshold"]), _clock(document).unit
    rows = [("seeds", *(str(found["seeds"]) for found in results))]

    def add(title: str, cells: Sequence[str]) -> None:
        if any(cell != "-" for cell in cells):
            rows.append((title, *cells))

    if measures["threshold"] is not None:
        for name in ("solved", "reached") if any(x["solved"] != x["reached"] for x in results) else ("solved",):
            title = name if name == "solved" else f"reached {goal} on the way"
            rows.append((title, *(f"{found[name]} of {found['seeds']}" for found in results)))
    add("final reward, IQM", [number(found["final_reward"]["iqm"]) for found in results])
    add("  95 % interval", [interval(found["final_reward"]["interval"]) for found in results])
    for name, counted in (("steps_to_threshold", unit), ("seconds_to_threshold", "seconds")):
        add(f"{counted} to {goal}, IQM", [steps(found[name]["iqm"]) for found in results])
        add("  95 % interval", [interval(found[name]["interval"], steps) for found in results])
        add("  median", [steps(found[name]["median"]) for found in results])
    start, end = measures["start"], measures["end"]
    add(f"mean reward, {number(start)} to {number(end)} {unit}", [number(found["area"]["iqm"]) for found in results])
    paces = [found["steps_per_second"] for found in results]
    add(f"{unit} per second", ["-" if math.isnan(pace) else number(round(pace)) for pace in paces])
    for test in ("steps_to_threshold", "final_reward", "area"):
        _add_test(document, test, add)
    notes = [f"Final reward: {measures['reward']}."]
    decides = next((test["measure"] for test in document["tests"] if test["decides"]), None)
    if decides is not None:
        name = decides.replace("steps", unit).replace("_", " ")
        notes.append(f"The verdict is based on {name}; with several measures, one often differs by chance.")
    return Section("Results over seeds", ("MEASURE", *_labels(document)), rows, notes)


def _add_test(document: Document, measure: str, add: Any) -> None:
    tests = {test["side"]: test for test in document["tests"] if test["measure"] == measure}
    if all(math.isnan(test["probability_of_improvement"]) for test in tests.values()):
        return
    fewer = f"fewer {_clock(document).unit}"
    name = {"steps_to_threshold": fewer, "final_reward": "higher reward", "area": "higher mean reward"}[measure]
    cells, p_values = ["-"], ["-"]
    for label in _labels(document)[1:]:
        test = tests[label]
        bounds = interval(test["interval"], lambda value: f"{value:.2f}")
        cells.append(f"{test['probability_of_improvement']:.2f}" + (f" ({bounds})" if bounds != "-" else ""))
        p_values.append("-" if min(test["seeds"]) < FEWEST else number(test["p_adjusted"]))
    add(f"probability of {name} than {document['baseline']}", cells)
    tested = sum(min(test["seeds"]) >= FEWEST for test in tests.values())
    add("  p" if tested < 2 else f"  p, corrected for {tested} sides", p_values)


def _seeds(document: Document) -> Section:
    goal, clock = number(document["measures"]["threshold"]), _clock(document)
    rows = [
        (
            side["label"],
            _seed(run),
            run["status"],
            number(run[clock.name]),
            number(run["final_reward"]),
            steps(run["steps_to_threshold"]),
            number(run["seconds_to_threshold"]) if math.isfinite(run["seconds_to_threshold"]) else "-",
            run["run_id"],
        )
        for side in document["sides"]
        for run in side["runs"]
    ]
    unit = clock.unit.upper()
    return Section("Seeds", ("SIDE", "SEED", "STATUS", unit, "REWARD", f"{unit} TO {goal}", "SECONDS", "RUN"), rows)


def _differences(document: Document) -> Section:
    labels = _labels(document)
    rows: list[Row] = []
    meanings: dict[tuple[str, str], list[str]] = {}
    absent: dict[tuple[str, str], list[str]] = {}
    for found in document["differences"]:
        name, values = found["field"], found["values"]
        for label, value in values.items():
            if value in (NOT_KNOWN, DOES_NOT_APPLY):
                absent.setdefault((value, name), []).append(label)
        if len({*values.values()} - {NOT_KNOWN, DOES_NOT_APPLY}) > 1:
            rows.append((name, *(values[label] for label in labels)))
        for label, sentence in found["assessment"].items():
            meanings.setdefault((label, sentence), []).append(name)
    of = "{fields} of {label}" if len(labels) > 2 else "{fields}"
    notes = [
        f"{of.format(fields=', '.join(fields), label=label)}: {sentence}."
        for (label, sentence), fields in meanings.items()
    ]
    if not document["differences"] and len(labels) > 1:
        notes = ["No setting differs."]
    return Section("Settings that differ", ("FIELD", *labels), rows, [*notes, *_absent(absent)])


def _absent(absent: Mapping[tuple[str, str], list[str]]) -> list[str]:
    """(why, field) → sides without it, in a sentence for each set of sides."""
    gathered: dict[tuple[str, str], list[str]] = {}
    for (reason, name), labels in absent.items():
        gathered.setdefault((reason, ", ".join(labels)), []).append(name)
    words = {NOT_KNOWN: "Not known for", DOES_NOT_APPLY: "Not applicable to"}
    return [f"{words[reason]} {labels}: {', '.join(names)}." for (reason, labels), names in gathered.items()]


def _derived(document: Document) -> Section:
    labels = _labels(document)
    rows = [(row["quantity"], *(number(row["values"][label]) for label in labels)) for row in document["derived"]]
    return Section("What the settings amount to", ("QUANTITY", *labels), rows)


def _losses(document: Document) -> Section:
    rows = []
    for term in TERMS:
        for label, phases in document["losses"].items():
            cells = [phases.get(phase, {}).get(term) for phase in PHASES]
            if any(cell is not None and cell["size"] for cell in cells):
                words = ("-" if cell is None else f"{number(cell['size'])} ({cell['share']:.1%})" for cell in cells)
                rows.append((term, label, *words))
    note = ["Size of the term times its coefficient, and its share of all terms; by thirds of each run."]
    return Section("Terms of the loss", ("TERM", "SIDE", *map(str.upper, PHASES)), rows, note if rows else [])


def _gradients(document: Document) -> Section:
    rows = []
    parts = dict.fromkeys(part for found in document["gradients"].values() for part in found)
    for part in parts:
        for label, found in document["gradients"].items():
            if part in found:
                rows.append((part, label, *(_norm(found[part].get(phase)) for phase in PHASES)))
    for label, found in document["gradients"].items():
        shares = [found.get("all", {}).get(phase, {}).get("clipped") for phase in PHASES]
        if any(share is not None for share in shares):
            rows.append(("clipped", label, *("-" if share is None else f"{share:.0%}" for share in shares)))
    note = ["Median (10 % to 90 %) before clipping; clipped: share of gradient steps."] if rows else []
    return Section("Gradient norms", ("PART", "SIDE", *map(str.upper, PHASES)), rows, note)


def _norm(found: Mapping[str, float] | None) -> str:
    return "-" if found is None else f"{number(found['median'])} ({number(found['low'])} to {number(found['high'])})"


def _schedules(document: Document) -> Section:
    rows = []
    for name, by_side in document["schedules"].items():
        drawn = _drawn({label: (found["steps"], found["values"]) for label, found in by_side.items()})
        for label, found in by_side.items():
            first, last = found["values"][0], found["values"][-1]
            rows.append((name, label, number(first), number(last), number(found["steps"][-1]), drawn[label]))
    return Section("Schedules", ("FIELD", "SIDE", "FIRST", "LAST", _clock(document).unit.upper(), "COURSE"), rows)
