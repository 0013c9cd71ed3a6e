"""From an environment to a policy above its threshold: train, diagnose, change, train again, until one passes.

As many trainings at a time as there are cores. What fails is diagnosed, and its advice becomes the next thing to try;
the nearer a configuration came, the sooner its advice is tried. A policy passes by an evaluation on episodes that
nothing was chosen by.
"""

from __future__ import annotations

import heapq
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gymnasium_solver.diagnose.engine import Diagnosis, diagnose
from gymnasium_solver.diagnose.readings import Readings, read
from gymnasium_solver.errors import SolverError
from gymnasium_solver.metrics.clocks import clock_of
from gymnasium_solver.recommend.recommendations import recommend
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.statistics import bootstrap_interval
from gymnasium_solver.verify.experiments.candidates import label, valid
from gymnasium_solver.verify.experiments.laboratory import Laboratory, outcome
from gymnasium_solver.verify.experiments.options import Options
from gymnasium_solver.verify.experiments.portfolio import beginnings, task
from gymnasium_solver.verify.experiments.solve_report import as_document, as_markdown, solution_yaml
from gymnasium_solver.verify.trials import Trained, Training, require_success

FRESH = 9_000_000  # its seed is far from any that trained or chose
LONGEST_SHARE = 0.4  # of the budget, for one training
UNFAMILIAR = "an unknown environment"
AGAIN = "another seed"
IDEAS = 10  # more than one attempt has
UNSAID = ("seed", "eval_freq_epochs")  # in the name of what is tried
MOST_STEPS_FACTOR = 4


@dataclass(frozen=True)
class Idea:
    """What to train, and why."""

    label: str
    fields: Mapping[str, Any]
    why: str
    parent: int | None = None  # number of the attempt that it follows from
    cause: str | None = None
    begun_with: Mapping[str, Any] | None = None  # the fields it was once derived from; None: its own

    @property
    def root(self) -> Mapping[str, Any]:
        return self.fields if self.begun_with is None else self.begun_with


@dataclass
class Attempt:
    """An idea that was trained."""

    number: int
    idea: Idea
    trained: Trained | None = None
    diagnosis: Diagnosis | None = None
    evaluation: Mapping[str, Any] | None = None  # on fresh episodes

    @property
    def has_worked(self) -> bool:
        return self.trained is not None and self.trained.status != "failed"

    @property
    def closeness(self) -> float:
        """Share of the way to the threshold; the return itself where there is none."""
        if self.diagnosis is None:
            return -float("inf")
        performance = self.diagnosis.performance
        best = performance.best if performance.best is not None else -float("inf")
        return best if performance.threshold is None or performance.score is None else performance.score


@dataclass
class Solution:
    """The whole history of a solve."""

    env_id: str
    threshold: float | None
    aim: str
    attempts: list[Attempt] = field(default_factory=list)
    solved_by: Attempt | None = None


def solve(env_id: str, options: Options, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The document of the history; its directory has the same, a report, and the configuration that solved it."""
    use_shipped, episodes, seed = options.use_shipped, options.episodes, options.seed
    spec, fields = task(env_id, dict(overrides or {}), options.target)
    threshold = fields.get("reward_threshold", spec.reward_threshold)
    aim = (
        f"a mean return of {threshold:g} over {episodes} fresh episodes"
        if threshold is not None
        else "the highest return the budget allows, clearly above random play (no threshold is known; give --target)"
    )
    options.say(f"{env_id}: aims for {aim}")
    ideas = [
        Idea(one.label, {**one.fields, "seed": seed + index}, one.why)
        for index, one in enumerate(beginnings(spec, fields, use_shipped=use_shipped))
    ]
    if not ideas:
        raise SolverError(f"{env_id}: no algorithm here supports its spaces")
    what = {"env_id": env_id, "task": fields, "use_shipped": use_shipped, "episodes": episodes, "seed": seed}
    history = Solution(env_id, threshold, aim)
    with Laboratory.open("solve", what, options) as laboratory:
        _Hunt(history, laboratory, ideas, episodes, hides_shipped=not use_shipped).go()
        document = as_document(history, laboratory)
        files = {"report.md": as_markdown(document)}
        if history.solved_by is not None:
            files["solution.yaml"] = solution_yaml(document)
        laboratory.conclude(document, files)
    return document


class _Hunt:
    """A solve while it runs."""

    def __init__(
        self, history: Solution, laboratory: Laboratory, ideas: list[Idea], episodes: int, *, hides_shipped: bool
    ) -> None:
        self.history, self.laboratory, self.episodes = history, laboratory, episodes
        self._hides_shipped = hides_shipped
        self._order = itertools.count()
        self._seed = max(int(idea.fields["seed"]) for idea in ideas)
        self._tried: set[str] = set()
        self._ideas: list[tuple[float, int, Idea]] = []
        for index, idea in enumerate(ideas):
            self._add(idea, index * 0.3)
        self._begun: dict[int, float] = {}

    def go(self) -> None:
        laboratory, history = self.laboratory, self.history
        for training, trained in laboratory.stream(self._next, self._is_enough):
            attempt = history.attempts[int(training.label.partition(" ")[0]) - 1]
            attempt.trained = trained
            self._look_at(attempt)
            if history.solved_by is not None:
                return
        require_success([one.trained for one in history.attempts if one.trained is not None], history.env_id)
        if history.threshold is None:
            self._settle_for_the_best()

    def _add(self, idea: Idea, priority: float) -> None:
        """Once; the same with another seed only where that is the idea."""
        seed = idea.fields["seed"] if idea.cause == AGAIN else None
        key = json.dumps({**idea.fields, "seed": seed}, sort_keys=True)
        if key not in self._tried:
            self._tried.add(key)
            heapq.heappush(self._ideas, (priority, next(self._order), idea))

    def _next(self) -> Training | None:
        idea = heapq.heappop(self._ideas)[2] if self._ideas else self._again()
        if idea is None:
            return None
        attempt = Attempt(len(self.history.attempts) + 1, idea)
        self.history.attempts.append(attempt)
        self.laboratory.say(f"{attempt.number}. {idea.label} ({idea.why})")
        training = Training(f"{attempt.number} {idea.label}", idea.fields, stop_on="critical")
        self._begun[attempt.number] = time.monotonic()
        return training

    def _again(self) -> Idea | None:
        """Where all advice is tried and there is budget left: what came nearest, for longer, with another seed."""
        looked_at = [one for one in self.history.attempts if one.diagnosis is not None and one.has_worked]
        if not looked_at:
            return None
        nearest = max(looked_at, key=lambda one: one.closeness)
        longer, why = _longer(nearest.idea), "it came closest: longer, with another seed"
        return self._idea(nearest, longer, AGAIN, why, IDEAS * len(self.history.attempts))

    def _is_enough(self, training: Training) -> bool:
        """A training that takes longer than its share, while others wait."""
        if not self._ideas:
            return False
        number = int(training.label.partition(" ")[0])
        took = time.monotonic() - self._begun[number]
        return took > LONGEST_SHARE * self.laboratory.budget.seconds

    def _look_at(self, attempt: Attempt) -> None:
        trained = attempt.trained
        assert trained is not None
        if not trained.path:
            self.laboratory.say(f"{attempt.number}. failed: {trained.error}")
            return
        run = Run(Path(trained.path))
        attempt.diagnosis = diagnose(self._readings(run))
        words = attempt.diagnosis.performance.words
        first = attempt.diagnosis.ranked[0] if attempt.diagnosis.ranked else None
        cause = f"; {first.cause.title} ({first.confidence:.0%})" if first and not trained.solved else ""
        self.laboratory.say(f"{attempt.number}. {outcome(trained)}: {words}{cause}")
        if trained.solved and self._passes(attempt, run):
            self.history.solved_by = attempt
            return
        for order, idea in enumerate(self._follow(attempt)):
            self._add(idea, 1.0 - min(attempt.closeness, 1.0) + 0.2 * order + 0.05)

    def _readings(self, run: Run) -> Readings:
        """Without a shipped configuration, what is known of the environment elsewhere stays out of the advice too."""
        readings = read(run)
        if not self._hides_shipped:
            return readings
        return replace(readings, config={**readings.config, "env_id": UNFAMILIAR}, beside=())

    def _passes(self, attempt: Attempt, run: Run) -> bool:
        attempt.evaluation = evaluate(run, self.episodes, FRESH + attempt.number)
        mean, threshold = attempt.evaluation["mean"], self.history.threshold
        passed = threshold is not None and mean >= threshold
        word = "passes" if passed else "does not pass"
        self.laboratory.say(f"{attempt.number}. {word}: mean return {mean:.4g} over {self.episodes} fresh episodes")
        return passed

    def _follow(self, attempt: Attempt) -> Iterator[Idea]:
        """What its diagnosis advises; where it was near, the same with another seed."""
        diagnosis = attempt.diagnosis
        assert diagnosis is not None
        if diagnosis.performance.verdict in ("solved", "close"):
            yield self._idea(attempt, _longer(attempt.idea), AGAIN, "it came close: longer, with another seed", 1)
        if diagnosis.performance.verdict == "solved":  # what there is to advise would save time, no more
            return
        for order, entry in enumerate(recommend(diagnosis), 2):
            if change := entry["set"]:
                yield self._idea(attempt, change, entry["cause"], entry["cause"], order)

    def _idea(self, attempt: Attempt, change: Mapping[str, Any], cause: str, why: str, order: int) -> Idea:
        """Its seed follows from what it follows from, so that a resumed solve has the same."""
        parent, seed = attempt.idea, self._seed + IDEAS * attempt.number + order
        fields = valid(parent.fields, change) or dict(parent.fields)
        whole = {name: new for name, new in fields.items() if parent.root.get(name) != new and name not in UNSAID}
        name = f"{parent.label.partition('; ')[0]}; {label(whole) if whole else AGAIN}"
        why = f"after {attempt.number}: {why}"
        return Idea(name, {**fields, "seed": seed}, why, attempt.number, cause, parent.root)

    def _settle_for_the_best(self) -> None:
        """Without a threshold: the best of all, if it is clearly better than random play."""
        worked = [(one, Run(Path(one.trained.path))) for one in self.history.attempts if one.trained and one.has_worked]
        ranked = [(one, run) for one, run in worked if "best" in run.checkpoints()]
        if not ranked:
            return
        best, run = max(ranked, key=lambda pair: pair[0].closeness)
        best.evaluation = evaluate(run, self.episodes, FRESH)
        random = best.diagnosis.performance.start if best.diagnosis else None
        low = best.evaluation["interval"][0]
        if random is not None and low is not None and low > random:
            self.history.solved_by = best


def _longer(idea: Idea) -> dict[str, Any]:
    """Twice the steps, four times those it began with at most."""
    budget = clock_of(idea.fields).budget
    return {budget: min(2 * int(idea.fields[budget]), MOST_STEPS_FACTOR * int(idea.root[budget]))}


def evaluate(run: Run, episodes: int, seed: int) -> dict[str, Any]:
    """The best checkpoint on fresh episodes."""
    from gymnasium_solver.train.judge import evaluate_checkpoint

    config = run.config
    found = evaluate_checkpoint(
        run, "best", episodes=episodes, deterministic=bool(config.get("eval_deterministic", True)), seed=seed
    )
    low, high = bootstrap_interval(found.returns, statistic=lambda returns: returns.mean(axis=1))
    return {"mean": found.mean, "std": found.std, "interval": [low, high], "episodes": episodes, "seed": seed}
