"""diagnosis.json and diagnosis.md: what was found wrong with a run, beside the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.errors import writing
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.reader import Run


def write_diagnosis(run: Run, document: Mapping[str, Any], text: str) -> None:
    with writing(
        run.path / layout.DIAGNOSIS, f"make it writable, or take the output of gsolve diagnose {run.run_id} --json"
    ):
        layout.write_json(run.path / layout.DIAGNOSIS, plain(document))
        layout.replace_file(run.path / layout.DIAGNOSIS_TEXT, [f"# Diagnosis of {run.run_id}\n\n{text}".encode()])
