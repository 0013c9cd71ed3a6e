"""A run's diagnosis with its recommendations, whole: what every way in shows."""

from __future__ import annotations

from typing import Any

from gymnasium_solver.diagnose.engine import Diagnosis, diagnose, document
from gymnasium_solver.diagnose.readings import read
from gymnasium_solver.recommend.recommendations import recommend
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.foreign.parameters import translate
from gymnasium_solver.runs.reader import Run


def diagnose_run(run: Run) -> dict[str, Any]:
    """The contract's document."""
    return whole_document(diagnose(read(run)), run)


def whole_document(diagnosis: Diagnosis, run: Run | None = None) -> dict[str, Any]:
    """With recommendations; for a run of another library in its words as well."""
    made = document(diagnosis, recommend(diagnosis))
    library = layout.read_json(run.path / layout.SOURCE).get("library") if run is not None else None
    if run is not None and library:
        for entry in made["recommendations"]:
            entry["translated"] = translate(library, entry["set"], run.config)
    return made
