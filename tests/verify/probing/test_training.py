"""Short trainings confirm the cause whose change helps, and only that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.causes import BY_ID
from gymnasium_solver.diagnose.engine import Diagnosis, diagnose
from gymnasium_solver.diagnose.inference import Ranked
from gymnasium_solver.diagnose.readings import EVALUATION, TRAINING, read
from gymnasium_solver.metrics.clocks import ENV_STEPS
from gymnasium_solver.verify.probing import training
from gymnasium_solver.verify.probing.investigation import plan, revise
from gymnasium_solver.verify.probing.probe import CONFIRMED, HINTED, UNLIKELY, Outcome, Probe, Trial
from gymnasium_solver.verify.probing.short_training import Curve, Terms, train_seeds
from tests.verify.probing.conftest import Suspect, config_for, curve

pytestmark = pytest.mark.integration

FAST, CLIP = Trial({"policy_lr": 1e-3}, ("learning-rate-too-low",)), Trial({"max_grad_norm": 0.5}, ("dead-units",))
BOTH = Trial({"policy_lr": 1e-3, "max_grad_norm": 0.5}, ("gradient-clip-too-tight",))
RESET = Trial({"policy_lr": 1e-3, "gamma": 0.98}, ())
NEEDED = 15_211


def reaching(*scores: float, solved: bool = False) -> list[Curve]:
    """One curve a seed that ends at this share of the way from 21 to 475."""
    return [Curve([1000.0, NEEDED], [21.0, 21 + 454 * score], [np.nan, np.nan], solved) for score in scores]


def judged(diagnosis: Diagnosis, trained: list[tuple[Trial, list[Curve]]], budget: int = NEEDED) -> Outcome:
    trials = tuple(trial for trial, _ in trained)
    probe = Probe("short-trainings", "training", "?", (), 1.0, trials, (0, 1), budget)
    return training._judge(probe, diagnosis, reaching(0.02, 0.0), [curves for _, curves in trained])


def test_what_helps_is_confirmed_and_what_changes_nothing_is_unlikely(suspect: Suspect) -> None:
    outcome = judged(suspect({}), [(FAST, reaching(0.5, 0.4)), (CLIP, reaching(0.02, 0.03))])
    assert outcome.odds == {"learning-rate-too-low": CONFIRMED, "dead-units": UNLIKELY}
    assert outcome.verdict == "learning-rate-too-low confirmed; dead-units unlikely"
    assert "+44%" in outcome.evidence


@pytest.mark.parametrize("scores", [(0.15, 0.1), (0.7, -0.1)])
def test_a_small_gain_or_one_of_one_seed_settles_nothing(suspect: Suspect, scores: tuple[float, float]) -> None:
    assert judged(suspect({}), [(FAST, reaching(*scores))]).odds == {}


def test_a_change_that_needs_only_a_part_of_itself_proves_nothing(suspect: Suspect) -> None:
    outcome = judged(suspect({}), [(FAST, reaching(0.5, 0.5)), (BOTH, reaching(0.55, 0.5))])
    assert outcome.odds == {"learning-rate-too-low": CONFIRMED}
    better = judged(suspect({}), [(FAST, reaching(0.3, 0.3)), (BOTH, reaching(0.9, 0.9))])
    assert better.odds["gradient-clip-too-tight"] == CONFIRMED


def test_no_effect_means_little_where_a_sound_run_would_show_none_either(suspect: Suspect) -> None:
    short = judged(suspect({}), [(FAST, reaching(0.0, 0.0))], budget=NEEDED // 10)
    assert short.odds["learning-rate-too-low"] == pytest.approx(UNLIKELY**0.1, rel=1e-3)
    assert "no effect yet" in short.verdict


def test_the_settings_known_to_work_tell_settings_from_bugs(suspect: Suspect) -> None:
    config = config_for(gamma=0.5, policy_lr=1e-6)
    diagnosis = suspect({"wrong-action-value": 0.5, "discount-too-low": 0.2, "learning-rate-too-low": 0.2}, config)
    helped = judged(diagnosis, [(FAST, reaching(0.0, 0.0)), (RESET, reaching(0.9, 0.9))]).odds
    assert helped == {"learning-rate-too-low": UNLIKELY, "discount-too-low": HINTED, "wrong-action-value": UNLIKELY}
    failed = judged(diagnosis, [(RESET, reaching(0.0, 0.0))]).odds
    assert failed["wrong-action-value"] == HINTED and failed["discount-too-low"] == UNLIKELY


def test_curves_are_compared_at_equal_steps() -> None:
    long = Curve([1000, 2000, 3000], [10.0, 20.0, 30.0], [np.nan, 5.0, 90.0])
    assert long.level(1500) == 10.0 and long.level(2500) == 20.0
    assert long.level(3000) == pytest.approx((5.0 + 90.0) / 2)
    assert Curve().level(100) is None


@pytest.mark.parametrize(
    ("evaluated", "rows", "solved"), [((30.0, 480.0, 490.0), 2, True), ((30.0, 40.0, 50.0, 60.0), 3, False)]
)
def test_a_training_ends_at_the_threshold_or_at_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: tuple[float, ...], rows: int, solved: bool
) -> None:
    def train(config: Config, *, on_event: Any, **_: Any) -> Any:
        (tmp_path / "run").mkdir()
        on_event(SimpleNamespace(kind="started", data={"path": str(tmp_path / "run"), "threshold": 475.0}))
        for i, value in enumerate(evaluated, 1):
            metrics = {ENV_STEPS.column: 1000 * i, TRAINING: 20.0, EVALUATION: value}
            on_event(SimpleNamespace(kind="epoch", data={"metrics": metrics}))
        raise AssertionError("trained on")

    monkeypatch.setattr("gymnasium_solver.train.session.train", train)
    (found,) = train_seeds(config_for(), {}, Terms([0], 2500, 60.0, tmp_path))
    assert len(found.steps) == rows and found.solved == solved
    assert not list(tmp_path.iterdir())


def test_a_training_can_go_on_past_the_threshold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(config: Config, *, on_event: Any, **_: Any) -> Any:
        assert not config.stop_when_solved
        on_event(SimpleNamespace(kind="started", data={"path": str(tmp_path / "run"), "threshold": 475.0}))
        for steps in (1000, 2000, 3000):
            metrics = {ENV_STEPS.column: steps, TRAINING: 20.0, EVALUATION: 500.0}
            on_event(SimpleNamespace(kind="epoch", data={"metrics": metrics}))

    monkeypatch.setattr("gymnasium_solver.train.session.train", train)
    (found,) = train_seeds(config_for(), {}, Terms([0], 2500, 60.0, tmp_path, until_solved=False))
    assert found.end == 3000 and not found.solved


def test_an_interrupted_training_ends_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = SimpleNamespace(status={"status": "interrupted"})
    monkeypatch.setattr("gymnasium_solver.train.session.train", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        train_seeds(config_for(), {}, Terms([0], 2500, 60.0, tmp_path))


def test_a_run_that_does_well_when_trained_again_was_not_failed_by_its_settings(suspect: Suspect) -> None:
    curves = {TRAINING: curve(20, 22, 21, 23)}
    diagnosis = suspect({"learning-rate-too-low": 0.4, "wrong-action-value": 0.4}, curves=curves)
    assert training._repeats(reaching(0.05)[0], diagnosis) is None
    how = training._repeats(reaching(0.8)[0], diagnosis)
    assert how is not None and "80%" in how
    outcome = training._not_repeated(Probe("p", "training", "?", (), 1.0), diagnosis, how)
    assert outcome.odds == {"learning-rate-too-low": UNLIKELY}


def test_a_learning_rate_of_nothing_is_found_by_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: a run that fails, its ranking blurred, probes, the ranking revised."""
    from gymnasium_solver.train.session import train

    monkeypatch.setattr("gymnasium_solver.train.books.write_report", lambda path: path)

    fields = {"n_envs": 8, "n_steps": 64, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "eval_episodes": 3}
    config = config_for(policy_lr=1e-6, max_grad_norm=0.3, max_env_steps=8192, **fields)
    run = train(config, runs_dir=tmp_path, command=["test"])
    found = diagnose(read(run))
    blurred = _blurred(found)
    (probe,) = plan(blurred, config)
    assert probe.kind == "training" and probe.budget == 8192
    said: list[str] = []
    outcome = training.run(probe, blurred, config, said.append)
    assert outcome.odds["learning-rate-too-low"] == CONFIRMED
    assert outcome.odds["gradient-clip-too-tight"] < 1
    revised = revise(blurred, [outcome])
    assert revised.ranked[0].cause.id == "learning-rate-too-low" and revised.ranked[0].confidence > 0.9
    assert len(said) == 3
    assert [path.name for path in tmp_path.iterdir() if not path.is_symlink()] == [run.run_id]  # nothing else is left


def _blurred(diagnosis: Diagnosis) -> Diagnosis:
    tied = ("gradient-clip-too-tight", "learning-rate-too-low")
    return replace(diagnosis, ranked=[Ranked(BY_ID[cause], 0.45, (), ()) for cause in tied])
