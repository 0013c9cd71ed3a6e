"""The OpenAPI description held against the server: no failure, and answers as they are described."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("schemathesis", reason="schemathesis is not installed")

import hypothesis
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gymnasium_solver import api
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.web.app import create_app
from gymnasium_solver.web.settings import Limits, Rate, Settings

pytestmark = pytest.mark.integration

CHECKS = (not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance)
ENDLESS = "/api/events"
EXAMPLES = 30


@pytest.mark.slow
def test_no_request_breaks_the_server(runs_dir: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "start", lambda ref, **options: (api.config(ref), "new-run")[1])
    plenty = Rate(1e9, 1e9)
    app = create_app(Settings(runs_dir, host="127.0.0.1", limits=Limits(plenty, plenty, plenty)))
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"Host": "127.0.0.1"})
    seen = 0
    for result in schema.exclude(path=ENDLESS).get_all_operations():
        operation = result.ok()
        strategy = operation.as_strategy()

        @hypothesis.settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.seed(0)
        @hypothesis.given(case=strategy, real=hypothesis.strategies.booleans())
        def ask(case: schemathesis.Case, real: bool) -> None:
            if real and "run_id" in case.path_parameters:  # a made-up id seldom is one
                case.path_parameters["run_id"] = run.run_id
            case.call_and_validate(headers={"Host": "127.0.0.1"}, checks=CHECKS)

        ask()
        seen += 1
    assert seen >= 15
