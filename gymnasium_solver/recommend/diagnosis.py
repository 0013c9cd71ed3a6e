"""A run's diagnosis with its recommendations, whole: what every way in shows."""

from __future__ import annotations

from typing import Any

from gymnasium_solver.diagnose.engine import Diagnosis, diagnose, document
from gymnasium_solver.diagnose.readings import read
from gymnasium_solver.recommend.recommendations import recommend
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.imports.parameters import translate
from gymnasium_solver.runs.reader import Run


def diagnose_run(run: Run) -> dict[str, Any]:
    """The contract's document; for a run of another library with the changes in its words as well."""
    document = whole_document(diagnose(read(run)))
    if library := layout.read_json(run.path / layout.SOURCE).get("library"):
        for entry in document["recommendations"]:
            entry["translated"] = translate(library, entry["set"], run.config)
    return document


def whole_document(diagnosis: Diagnosis) -> dict[str, Any]:
    recommendations = recommend(diagnosis.ranked, diagnosis.readings, diagnosis.performance, diagnosis.answers)
    return document(diagnosis, recommendations)
