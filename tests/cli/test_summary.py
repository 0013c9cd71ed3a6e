"""The end of a training: the head of the diagnosis, with the change that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymnasium_solver import api
from gymnasium_solver.cli.summary import emit_summary, finding_of
from tests.made_runs import write_run


def entry(cause: str, **fields: object) -> dict[str, object]:
    return {"cause": cause, "set": fields, "cli": f"gsolve train --for {cause}", "rationale": f"{cause} it is. More."}


def told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, causes: list[dict], recommendations: list[dict]
) -> dict[str, str]:
    document = {"bottlenecks": causes, "recommendations": recommendations}
    monkeypatch.setattr(api, "diagnose", lambda run: document)
    return finding_of(write_run(tmp_path))


LONG = {"title": "rollouts are too long", "cause": "rollout-too-long", "confidence": 0.9}


def test_advice_without_a_cause_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = told(monkeypatch, tmp_path, [], [entry("unexplained", optimizer="adam")])
    assert found == {
        "finding": "None that the run shows evidence of.",
        "change": "set optimizer to adam",
        "command": "gsolve train --for unexplained",
        "because": "unexplained it is",
    }


def test_a_finding_stands_with_its_own_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    advice = [entry("unexplained", n_steps=200), entry("rollout-too-long", n_steps=6)]
    assert told(monkeypatch, tmp_path, [LONG], advice)["command"] == "gsolve train --for rollout-too-long"


def test_a_change_for_another_reason_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = told(monkeypatch, tmp_path, [LONG], [entry("unexplained", n_steps=200)])
    assert found["command"] == "gsolve train --for unexplained"
    assert found["because"] == "unexplained it is"


def test_where_to_look_comes_before_other_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = told(monkeypatch, tmp_path, [{**LONG, "where": "the reward"}], [entry("unexplained", n_steps=200)])
    assert found["look at"] == "the reward"
    assert "change" not in found


def test_commands_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs_dir = tmp_path / "my runs"
    emit_summary(write_run(runs_dir, status="interrupted"), runs_dir)
    assert f"--runs-dir '{runs_dir}'" in capsys.readouterr().out.replace("\n", "")
