"""The verdict of a comparison in one sentence: no more than the seeds allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium_solver.plain import listed, number
from gymnasium_solver.statistics import ALPHA, FEWEST, seeds_for_ranks, seeds_needed
from gymnasium_solver.verify.comparison.measures import Measures, recorded_rewards
from gymnasium_solver.verify.comparison.results import Judged
from gymnasium_solver.verify.comparison.runs import FINAL
from gymnasium_solver.verify.comparison.sides import Side
from gymnasium_solver.verify.comparison.wording import interval, p_value, steps

SEEN = 3  # sides told of where nothing is claimed


def verdict(
    sides: Sequence[Side], results: Sequence[Mapping[str, Any]], measures: Measures, judged: Sequence[Judged]
) -> dict[str, Any]:
    """`outcome` of the side that is told of first, `side` its letter, `text` the sentence."""
    if len(sides) == 1:
        return _of("one side", sides[0].label, _one_side(sides[0], results[0], measures))
    silent = [side for side in sides if not any(recorded_rewards(run) for run in side.runs)]
    if silent:
        names = listed([side.title for side in silent])
        return _of("no data", silent[0].label, f"No claim: no run of {names} has finished an episode yet.")
    if measures.final is None:
        recorded = "; ".join(
            f"{s.title}: {listed(sorted({n for r in s.runs for n in recorded_rewards(r)}))}" for s in sides
        )
        return _of("no common metric", None, f"No claim: the runs have no measure of reward in common ({recorded}).")
    words = [_Words(one, sides, results, measures) for one in judged]
    shown = [one for one in words if one.judged.verdict in ("better", "worse")]
    not_shown = [one for one in words if one.judged.verdict == "no difference shown"]
    unsure = [one for one in words if one.judged.verdict == "too few seeds"]
    baseline = sides[0].title
    sentences = [f"{one.title} is {one.judged.verdict} than {baseline}: it {one.seen} ({one.odds})" for one in shown]
    sentences += [f"No difference shown between {one.title} and {baseline}: {one.not_shown}" for one in not_shown]
    first = (shown or not_shown or unsure)[0].judged
    text = "; ".join(sentences) + "." if sentences else ""
    return _of(first.verdict, first.side, " ".join(filter(None, (text, _too_few(unsure)))))


def _too_few(unsure: Sequence[_Words]) -> str:
    """Of sides about which nothing can be claimed: what was seen, and what it would take."""
    if not unsure:
        return ""
    counts = {one.judged.comparison.seeds for one in unsure}
    theirs, ours = min(counts)
    if len(counts) == 1 and theirs == ours:
        seeds = f"{'One seed' if ours == 1 else f'{ours} seeds'} per side"
    else:
        seeds = f"Fewer than {FEWEST} seeds per side"
    seen = "; ".join(f"{one.title} {one.seen}" for one in unsure[:SEEN])
    return f"{seeds}: no claim. Observed: {seen}. A claim takes {_enough()}."


def _of(outcome: str, side: str | None, text: str) -> dict[str, Any]:
    return {"outcome": outcome, "side": side, "text": text}


def _one_side(side: Side, found: Mapping[str, Any], measures: Measures) -> str:
    text = (
        f"Nothing to compare: all runs are on one side ({side.name}), seeds {listed([str(r.seed) for r in side.runs])}"
    )
    if found["with_data"]:
        bounds = interval(found["final_reward"]["interval"])
        text += f"; final reward {number(found['final_reward']['iqm'])}" + (f" ({bounds})" if bounds != "-" else "")
        if measures.threshold is not None:
            text += f", solved {found['solved']} of {found['seeds']}"
    return f"{text}. --group-by FIELD splits them into sides."


def _enough() -> str:
    """How many seeds it takes before there is anything to say."""
    return (
        f"at least {FEWEST} seeds per side; {seeds_needed(2.0)} per side would show a difference of two standard "
        f"deviations, {seeds_needed(1.0)} a difference of one"
    )


class _Words:
    """What is said of one side against the baseline."""

    def __init__(
        self, judged: Judged, sides: Sequence[Side], results: Sequence[Mapping[str, Any]], measures: Measures
    ) -> None:
        place = next(place for place, side in enumerate(sides) if side.label == judged.side)
        self.judged, self.title, self.measures = judged, sides[place].title, measures
        self.ours, self.theirs = results[place], results[0]
        self.tests = sum(found["with_data"] >= FEWEST for found in results[1:])

    @property
    def seen(self) -> str:
        """`reaches 475 in 41,000 steps against 88,000`."""
        name, unit = self.judged.measure, self.measures.clock.unit
        if name == "final_reward":
            after = "at the end" if self.measures.final == FINAL else f"after {number(self.measures.end)} {unit}"
            return (
                f"has a reward of {number(self.ours[name]['iqm'])} against {number(self.theirs[name]['iqm'])} {after}"
            )
        goal = number(self.measures.threshold)
        ours, theirs = (_middle(found[name]) for found in (self.ours, self.theirs))
        counts = [f"{found['reached']} of {found['seeds']} seeds" for found in (self.ours, self.theirs)]
        if math.isinf(ours) and math.isinf(theirs):
            return f"reaches {goal} with {counts[0]} against {counts[1]}"
        if math.isinf(ours):
            return f"reaches {goal} with {counts[0]}, against {steps(theirs)} {unit} with {counts[1]}"
        if math.isinf(theirs):
            return f"reaches {goal} in {steps(ours)} {unit} with {counts[0]}, against {counts[1]}"
        return f"reaches {goal} in {steps(ours)} {unit} against {steps(theirs)}"

    @property
    def odds(self) -> str:
        found = self.judged.comparison
        theirs, ours = found.seeds
        seeds = f"{ours} seeds per side" if ours == theirs else f"{ours} seeds against {theirs}"
        corrected = f" corrected for {self.tests} sides" if self.tests > 1 else ""
        bounds = interval(found.probability_interval, lambda value: f"{value:.2f}")
        return (
            f"probability of improvement {found.probability:.2f}, {bounds}, {seeds}, "
            f"{p_value(self.judged.p_adjusted)}{corrected}"
        )

    @property
    def not_shown(self) -> str:
        found = self.judged.comparison
        text = f"it {self.seen} ({self.odds})"
        if found.effect == 0:
            return text
        if found.seeds_needed is not None and found.seeds_needed > min(found.seeds):
            return f"{text}; if the difference holds, {found.seeds_needed} seeds per side would show it (power 0.8)"
        fewest = seeds_for_ranks(ALPHA / self.tests)
        if math.isnan(found.effect) and min(found.seeds) < fewest:
            return f"{text}; when seeds miss the threshold, it takes at least {fewest} per side to show anything"
        if found.seeds_needed is None and not math.isnan(found.effect):
            return f"{text}; a difference this small would take over 1,000 seeds per side to show"
        return text


def _middle(over_seeds: Mapping[str, Any]) -> float:
    """The interquartile mean, or the median where some seeds that count never got there."""
    return over_seeds["iqm"] if math.isfinite(over_seeds["iqm"]) else over_seeds["median"]
