"""The catalogue of evidence: yes-or-no questions to a run, each answered with the number it was answered by.

An answer is None where the run does not tell (no such metric, configuration unknown). No question alone names a cause:
healthy runs answer many with yes. The causes say which answers speak for them. The questions are in `questions/`, by
topic.
"""

from __future__ import annotations

from collections.abc import Mapping

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions import course, data, health, settings, updates, values
from gymnasium_solver.diagnose.questions.asking import Answer, Evidence
from gymnasium_solver.diagnose.readings import Readings

CATALOGUE: tuple[Evidence, ...] = (
    *course.QUESTIONS,
    *updates.QUESTIONS,
    *values.QUESTIONS,
    *data.QUESTIONS,
    *settings.QUESTIONS,
    *health.QUESTIONS,
)
BY_NAME: Mapping[str, Evidence] = {entry.name: entry for entry in CATALOGUE}
SETTINGS = tuple(entry.name for entry in (*settings.UNUSUAL, *settings.MEASURED))

# Questions that mostly have the same answer; what they say together counts little more than once.
GROUPS = {
    "still": ("entropy-uniform", "entropy-high", "kl-none", "kl-tiny", "clip-none", "update-tiny"),
    "moving": ("kl-large", "kl-ever-huge", "clip-high", "update-large", "return-unstable", "return-collapsed"),
    "certain": ("entropy-gone-early", "entropy-gone", "one-action", "std-tiny"),
    "clipped": ("clipped-always", "gradient-far-above-clip"),
    "sizes": ("rewards-large", "targets-large", "value-loss-huge", "gradient-explodes"),
    "values": ("q-beyond-bound", "q-grows", "td-error-grows", "values-beyond-achievable"),
    "units": ("units-dead", "units-dying"),
    "empty": ("no-reward", "returns-equal", "reward-sparse", "goal-never-reached"),
}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}


def answers(readings: Readings, performance: Performance) -> dict[str, Answer | None]:
    return {entry.name: entry.test(readings, performance) for entry in CATALOGUE}
