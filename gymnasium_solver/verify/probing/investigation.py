"""Which experiments would settle a diagnosis, and the ranking once they are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gymnasium_solver.config.cards import default_algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.causes import BY_ID
from gymnasium_solver.diagnose.engine import Diagnosis
from gymnasium_solver.diagnose.evidence import Answer
from gymnasium_solver.diagnose.inference import MOST, SHOWN, TIE, Ranked
from gymnasium_solver.errors import SolverError
from gymnasium_solver.verify.probing.probe import Outcome, Probe, Say

SETTLED = 0.9  # a first cause surer than this needs no experiment
WORTH_TESTING = 0.1
UNSEEN = 0.02  # confidence in a cause of which the run shows nothing, before an experiment shows it
PLAY_SECONDS = 3.0  # with building the environments

# What random play shows, and the questions of the catalogue that it answers.
PLAYED: Mapping[str, tuple[str, ...]] = {
    "constant-observation": ("observations-constant",),
    "partial-observability": ("observation-part-constant",),
    "observation-noise": ("observations-noisy",),
    "observation-scale": ("observations-large",),
    "actions-have-no-effect": ("actions-without-effect",),
    "constant-reward": ("no-reward", "returns-equal"),
    "reward-sign-flipped": ("rewards-oppose-threshold",),
    "reward-scale": ("rewards-large",),
    "duplicate-seeds": ("streams-identical",),
    "truncation-as-termination": ("equal-lengths-not-truncated",),
}


def config_of(diagnosis: Diagnosis) -> Config | None:
    """The run's configuration, or the defaults for its environment where the run does not tell (an imported one)."""
    readings = diagnosis.readings
    stand_in = {"env_id": readings.env_id, "algo_id": readings.algo if readings.card else default_algorithm()}
    for fields in (dict(readings.config), stand_in):
        try:
            return build_config(fields, readings.run_id)
        except SolverError:
            continue
    return None


def plan(diagnosis: Diagnosis, config: Config | None, say: Say = lambda _: None) -> list[Probe]:
    """The cheapest first; empty where nothing is open. What would be worth trying but is not planned is told to
    `say`."""
    performance = diagnosis.performance
    if config is None or not (performance.is_bad or performance.verdict == "unknown"):
        return []
    candidates = open_causes(diagnosis)
    if diagnosis.ranked and not candidates:
        return []
    probes = [probe for probe in (_play(diagnosis, config, candidates),) if probe is not None]
    if performance.is_bad:
        if is_complete(diagnosis):
            from gymnasium_solver.verify.probing import training

            probes += training.plan(diagnosis, config, candidates, say)
        else:
            say("no training probe: the configuration of the run is not fully known")
    return sorted(probes, key=lambda probe: probe.seconds)


def open_causes(diagnosis: Diagnosis) -> list[Ranked]:
    """What cannot be told apart: nothing where the first cause is as good as certain."""
    ranked = diagnosis.ranked
    if not ranked or ranked[0].confidence > SETTLED:
        return []
    first = ranked[0].confidence
    return [entry for entry in ranked if entry.confidence >= WORTH_TESTING or entry.confidence * TIE >= first]


def is_complete(diagnosis: Diagnosis) -> bool:
    """Whether the run has on record what it was trained with."""
    needed = {"env_id", "algo_id", "seed", "n_envs", "n_steps", "policy_lr", "gamma", "max_env_steps", "env_wrappers"}
    return needed <= diagnosis.readings.config.keys()


def run_probe(probe: Probe, diagnosis: Diagnosis, config: Config, say: Say) -> Outcome:
    if probe.kind == "environment":
        from gymnasium_solver.verify.probing import environment

        return environment.run(probe, diagnosis, config, say)
    from gymnasium_solver.verify.probing import training

    return training.run(probe, diagnosis, config, say)


def investigate(
    diagnosis: Diagnosis, config: Config, probes: Sequence[Probe], say: Say
) -> tuple[Diagnosis, list[Outcome]]:
    """Run them in turn, telling `say` what each decides, what it costs and what came out; one that has nothing left to
    decide is left out."""
    outcomes: list[Outcome] = []
    revised = diagnosis
    for probe in probes:
        still_open = {entry.cause.id for entry in open_causes(revised)}
        if outcomes and revised.ranked and not still_open & set(probe.causes):
            say(f"{probe.name}: no longer needed")
            continue
        say(f"{probe.name}: {probe.question} {probe.cost}")
        outcomes.append(run_probe(probe, diagnosis, config, say))
        say(f"{probe.name}: {outcomes[-1].verdict} ({outcomes[-1].evidence})")
        revised = revise(diagnosis, outcomes)
    return revised, outcomes


def revise(diagnosis: Diagnosis, outcomes: Sequence[Outcome]) -> Diagnosis:
    """The ranking with the odds of all outcomes applied. What is in no ranked cause stays with the unknown."""
    weights = {entry.cause.id: entry.confidence for entry in diagnosis.ranked}
    rest = max(1.0 - sum(weights.values()), 0.0)
    odds: dict[str, float] = {}
    for outcome in outcomes:
        for cause, factor in outcome.odds.items():
            odds[cause] = odds.get(cause, 1.0) * factor
    for cause, factor in odds.items():
        if cause not in weights and factor > 1.0:  # the run gave no reason to suspect it; the experiment does
            share = min(UNSEEN, rest / 2)
            weights[cause], rest = share, rest - share
    weights = {cause: weight * odds.get(cause, 1.0) for cause, weight in weights.items()}
    total = sum(weights.values()) + rest
    answered = {name: answer for outcome in outcomes for name, answer in outcome.answers.items()}
    before = {entry.cause.id: entry for entry in diagnosis.ranked}
    ranked = [
        _with_answers(before.get(cause) or Ranked(BY_ID[cause], 0.0, (), ()), weight / total, answered)
        for cause, weight in sorted(weights.items(), key=lambda item: -item[1])
        if total > 0 and weight / total >= SHOWN
    ]
    return replace(diagnosis, answers={**diagnosis.answers, **answered}, ranked=ranked[:MOST])


def as_document(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """For the JSON form of a diagnosis."""
    return [{"probe": o.name, "verdict": o.verdict, "evidence": o.evidence, "odds": dict(o.odds)} for o in outcomes]


def _with_answers(entry: Ranked, confidence: float, answered: Mapping[str, Answer]) -> Ranked:
    """What an experiment answered takes the place of what the run's files said to the same question."""
    likely = {name: p for name, p in entry.cause.evidence.items() if name in answered}
    speaks_for = [name for name in entry.speaks_for if name not in likely]
    against = [name for name in entry.speaks_against if name not in likely]
    speaks_for += [name for name, p in likely.items() if answered[name].holds and p >= 0.3]
    against += [name for name, p in likely.items() if answered[name].holds != (p >= 0.5) and name not in speaks_for]
    return Ranked(entry.cause, confidence, tuple(speaks_for), tuple(against))


def _play(diagnosis: Diagnosis, config: Config, candidates: Sequence[Ranked]) -> Probe | None:
    """Random play, if it can touch what is open: a suspect, or a question that the run's files leave unanswered."""
    suspected = [entry.cause.id for entry in candidates if entry.cause.id in PLAYED]
    untold = [cause for cause, names in PLAYED.items() if all(diagnosis.answers.get(n) is None for n in names)]
    if not suspected and len(untold) < len(PLAYED) // 2:
        return None
    from gymnasium_solver.verify.probing import environment

    if not environment.can_make(config):
        return None
    causes = tuple(dict.fromkeys([*suspected, *untold]))
    asked = f"{' or '.join([*suspected, 'neither'])}?" if suspected else "is the environment sound?"
    return Probe("random-play", "environment", asked, causes, PLAY_SECONDS)
