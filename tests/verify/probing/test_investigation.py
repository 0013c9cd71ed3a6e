"""Which probes are planned, and what they make of the ranking."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gymnasium_solver.diagnose.evidence import Answer
from gymnasium_solver.verify.probing import investigation
from gymnasium_solver.verify.probing.investigation import plan, revise
from gymnasium_solver.verify.probing.probe import Outcome, Probe
from gymnasium_solver.verify.probing.training import MOST_SECONDS
from tests.verify.probing.conftest import Suspect, config_for

LOW_RATE = config_for(policy_lr=1e-6, max_grad_norm=1e-4)
TIED = {"learning-rate-too-low": 0.45, "gradient-clip-too-tight": 0.4}
CARTPOLE_PPO_STEPS = 15_211  # diagnose/baselines.json


def answered(diagnosis: object, *names: str) -> None:
    """The run itself tells that these are not so."""
    for name in names:
        diagnosis.answers[name] = Answer(False, 0.0, "")  # type: ignore[attr-defined]


def told(suspect: Suspect, *arguments: object, **options: object) -> object:
    """A diagnosis whose run answers every question that random play could."""
    diagnosis = suspect(*arguments, **options)
    answered(diagnosis, *(name for names in investigation.PLAYED.values() for name in names))
    return diagnosis


def test_a_sure_diagnosis_and_a_sound_run_need_no_probe(suspect: Suspect) -> None:
    assert plan(suspect({"learning-rate-too-low": 0.95}, LOW_RATE), LOW_RATE) == []
    assert plan(suspect({"kl-estimator-wrong": 0.5}, LOW_RATE, verdict="solved"), LOW_RATE) == []


def test_a_tie_of_settings_is_trained(suspect: Suspect) -> None:
    (probe,) = plan(told(suspect, TIED, LOW_RATE), LOW_RATE)
    assert probe.kind == "training" and probe.causes == ("learning-rate-too-low", "gradient-clip-too-tight")
    assert probe.question.startswith("learning-rate-too-low or gradient-clip-too-tight?")
    assert [sorted(trial.change) for trial in probe.trials] == [["policy_lr"], ["max_grad_norm"]]
    assert probe.budget == CARTPOLE_PPO_STEPS and probe.seeds == (0, 1)
    assert "6 trainings of 15,211 steps" in probe.cost


def test_a_suspected_environment_is_played_first(suspect: Suspect) -> None:
    diagnosis = told(suspect, {"actions-have-no-effect": 0.5, "learning-rate-too-low": 0.4}, LOW_RATE)
    assert [probe.kind for probe in plan(diagnosis, LOW_RATE)] == ["environment", "training"]


def test_what_a_run_does_not_tell_of_its_environment_is_played(suspect: Suspect) -> None:
    assert plan(suspect(TIED, LOW_RATE), LOW_RATE)[0].kind == "environment"


def test_suspected_bugs_are_told_from_settings_by_those_known_to_work(suspect: Suspect) -> None:
    (probe,) = plan(told(suspect, {"wrong-action-value": 0.5}, LOW_RATE), LOW_RATE)
    (trial,) = probe.trials
    assert trial.causes == () and {"policy_lr", "max_grad_norm"} <= trial.change.keys()


def test_causes_with_the_same_change_share_a_trial(suspect: Suspect) -> None:
    config = config_for(policy_lr=0.3)
    (probe,) = plan(told(suspect, {"learning-rate-too-high": 0.5, "dead-units": 0.4}, config), config)
    assert [trial.causes for trial in probe.trials] == [("learning-rate-too-high", "dead-units")]


def test_more_steps_are_no_short_experiment(suspect: Suspect) -> None:
    config = config_for()
    probe = plan(told(suspect, {"training-too-short": 0.6}, config), config)
    assert not any("max_env_steps" in trial.change and len(trial.change) == 1 for p in probe for trial in p.trials)


def test_a_probe_that_takes_too_long_is_not_planned_and_that_is_said(suspect: Suspect) -> None:
    said: list[str] = []
    (probe,) = plan(told(suspect, TIED, LOW_RATE, seconds=80.0), LOW_RATE, said.append)  # 1.6 ms a step
    assert probe.seconds <= MOST_SECONDS and probe.budget == 10_000 and len(probe.trials) == 2
    (probe,) = plan(told(suspect, TIED, LOW_RATE, seconds=120.0), LOW_RATE, said.append)
    assert probe.seconds <= MOST_SECONDS and len(probe.trials) == 1 and probe.budget == 10_000
    assert not said
    assert plan(told(suspect, TIED, LOW_RATE, seconds=50_000.0), LOW_RATE, said.append) == []
    assert "more than 120 s" in said[-1]


def test_without_a_threshold_nothing_is_trained(suspect: Suspect) -> None:
    said: list[str] = []
    assert plan(told(suspect, TIED, LOW_RATE, threshold=None), LOW_RATE, said.append) == []
    assert "threshold" in said[0]


def test_an_imported_run_is_played_at_most(suspect: Suspect) -> None:
    fields = {"env_id": "CartPole-v1", "algo_id": "ppo", "policy_lr": 1e-6}
    diagnosis = suspect(TIED, fields=fields)
    config = investigation.config_of(diagnosis)
    assert config is not None and config.policy_lr == 1e-6
    assert [probe.kind for probe in plan(diagnosis, config)] == ["environment"]


@pytest.mark.parametrize("env_id", [None, "NoSuchEnvironment-v7"])
def test_an_unknown_environment_cannot_be_probed(suspect: Suspect, env_id: str | None) -> None:
    diagnosis = suspect(TIED, fields={"env_id": env_id} if env_id else {})
    assert plan(diagnosis, investigation.config_of(diagnosis)) == []


def test_odds_are_applied_and_renormalised(suspect: Suspect) -> None:
    diagnosis = suspect({"learning-rate-too-low": 0.5, "gradient-clip-too-tight": 0.3})
    outcome = Outcome("p", "", "", {"learning-rate-too-low": 0.2, "gradient-clip-too-tight": 10.0})
    revised = revise(diagnosis, [outcome])
    total = 0.5 * 0.2 + 0.3 * 10 + 0.2  # the last: what is in neither
    found = {entry.cause.id: entry.confidence for entry in revised.ranked}
    assert list(found) == ["gradient-clip-too-tight"]  # the other fell below what is shown
    assert found["gradient-clip-too-tight"] == pytest.approx(3.0 / total)
    assert diagnosis.ranked[0].cause.id == "learning-rate-too-low"  # untouched


def test_outcomes_multiply_and_no_outcome_changes_nothing(suspect: Suspect) -> None:
    diagnosis = suspect({"learning-rate-too-low": 0.5, "gradient-clip-too-tight": 0.3})
    once = Outcome("p", "", "", {"learning-rate-too-low": 2.0})
    assert revise(diagnosis, [once, once]).ranked[0].confidence == pytest.approx(2.0 / 2.5)
    assert [entry.confidence for entry in revise(diagnosis, []).ranked] == pytest.approx([0.5, 0.3])


def test_what_a_probe_proves_enters_the_ranking_and_what_it_only_rules_out_does_not(suspect: Suspect) -> None:
    diagnosis = suspect({"learning-rate-too-low": 0.5})
    answers = {"observations-constant": Answer(True, 4.0, "")}
    revised = revise(
        diagnosis, [Outcome("p", "", "", {"constant-observation": 200.0, "observation-noise": 0.02}, answers)]
    )
    assert [entry.cause.id for entry in revised.ranked] == ["constant-observation", "learning-rate-too-low"]
    first = revised.ranked[0]
    assert first.confidence == pytest.approx(0.02 * 200 / (0.5 + 4.0 + 0.48))
    assert first.speaks_for == ("observations-constant",)
    assert revised.answers["observations-constant"] == answers["observations-constant"]
    assert sum(entry.confidence for entry in revised.ranked) <= 1.0


def test_an_answer_of_a_probe_replaces_that_of_the_run(suspect: Suspect) -> None:
    diagnosis = suspect({"actions-have-no-effect": 0.6})
    answers = {"actions-without-effect": Answer(False, 1.0, "")}
    (entry,) = revise(diagnosis, [Outcome("p", "", "", {}, answers)]).ranked
    assert entry.speaks_for == () and entry.speaks_against == ("actions-without-effect",)


@pytest.mark.parametrize(("factor", "expected"), [(200.0, ["play"]), (1.0, ["play", "train"])])
def test_a_probe_with_nothing_left_to_decide_is_left_out(
    suspect: Suspect, monkeypatch: pytest.MonkeyPatch, factor: float, expected: list[str]
) -> None:
    play = Probe("play", "environment", "?", ("actions-have-no-effect",), 1.0)
    training = Probe("train", "training", "?", ("learning-rate-too-low",), 9.0)
    odds, said = {"actions-have-no-effect": factor}, []
    monkeypatch.setattr(investigation, "run_probe", lambda probe, *_: Outcome(probe.name, "", "", odds))
    diagnosis = suspect({"actions-have-no-effect": 0.5, "learning-rate-too-low": 0.4})
    _, outcomes = investigation.investigate(diagnosis, LOW_RATE, [play, training], said.append)
    assert [outcome.name for outcome in outcomes] == expected
    assert ("train: no longer needed" in said) == (expected == ["play"])


@pytest.mark.integration
def test_planning_loads_no_jax() -> None:
    code = "import sys; from gymnasium_solver.verify.probing import investigation, training; " \
        "print([m for m in ('jax', 'gymnasium') if m in sys.modules])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
