"""Random play finds what is wrong with an environment, and nothing in a sound one."""

from __future__ import annotations

import numpy as np
import pytest

from gymnasium_solver.diagnose.engine import Diagnosis
from gymnasium_solver.verify.probing import environment, random_play
from gymnasium_solver.verify.probing.environment import difference
from gymnasium_solver.verify.probing.investigation import PLAYED
from gymnasium_solver.verify.probing.probe import Outcome, Probe
from tests.verify.probing.conftest import Suspect, config_for, curve

LINE = "tests.verify.probing.broken_environments:Line"
PROBE = Probe("random-play", "environment", "?", tuple(PLAYED), 3.0)
FAULTS = {
    "blind": "constant-observation",
    "half-blind": "partial-observability",
    "noise": "observation-noise",
    "large": "observation-scale",
    "deaf": "actions-have-no-effect",
    "opposed": "reward-sign-flipped",
    "rich": "reward-scale",
    "no-truncation": "truncation-as-termination",
    "nan": "non-finite-values",
}


@pytest.fixture(autouse=True)
def short_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_play, "LONG_STEPS", 300)
    monkeypatch.setattr(random_play, "PAIRED_STEPS", 60)


def played(suspect: Suspect, fault: str, threshold: float | None = 30.0) -> Outcome:
    config = config_for(LINE, env_kwargs={"fault": fault})
    return environment.run(PROBE, suspect({}, config, threshold=threshold), config, lambda _: None)


def test_a_sound_environment_speaks_against_every_cause(suspect: Suspect) -> None:
    outcome = played(suspect, "none")
    assert set(outcome.odds) >= set(PLAYED)
    assert all(factor < 1 for factor in outcome.odds.values())
    assert not any(answer.holds for answer in outcome.answers.values())
    assert outcome.verdict.startswith("speaks against")


@pytest.mark.parametrize(("fault", "cause"), FAULTS.items())
def test_a_fault_is_seen(suspect: Suspect, fault: str, cause: str) -> None:
    outcome = played(suspect, fault)
    shown = {name for name, factor in outcome.odds.items() if factor > 1}
    assert cause in shown and len(shown) == 1, outcome
    assert cause in outcome.verdict


def test_an_unpaid_environment_is_not_told_from_a_sparse_one(suspect: Suspect) -> None:
    outcome = played(suspect, "unpaid")
    assert "constant-reward" not in outcome.odds and "sparse-reward" not in outcome.odds
    assert "cannot tell about constant-reward" in outcome.verdict
    assert outcome.answers["no-reward"].holds


def test_without_a_threshold_no_sign_is_wrong(suspect: Suspect) -> None:
    assert "reward-sign-flipped" not in played(suspect, "opposed", threshold=None).odds


def test_randomness_that_no_seed_governs_leaves_actions_open(suspect: Suspect) -> None:
    outcome = played(suspect, "unseeded")
    assert "actions-have-no-effect" not in outcome.odds
    assert "do not give the same result twice" in outcome.evidence


def test_environments_of_one_seed_are_alike_unless_nothing_is_random(
    suspect: Suspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "duplicate-seeds" not in played(suspect, "always-alike").odds  # deterministic: not a matter of seeds
    monkeypatch.setattr("gymnasium_solver.envs.local.environment_seeds", lambda seed, n: [seed] * n)
    assert played(suspect, "none").odds["duplicate-seeds"] > 1


def test_an_environment_that_raises(suspect: Suspect) -> None:
    outcome = played(suspect, "raises")
    assert outcome.odds == {"environment-error": environment.PROVEN}
    assert "contact buffer is full" in outcome.evidence


def test_another_environment_than_the_run_had_proves_nothing(suspect: Suspect) -> None:
    config = config_for(LINE)
    rewards = {"train/data/reward_min": curve(-1.1, -1.1), "train/data/reward_max": curve(-0.9, -0.9)}
    diagnosis: Diagnosis = suspect({"reward-sign-flipped": 0.6}, config, curves=rewards, threshold=30.0)
    outcome = environment.run(PROBE, diagnosis, config, lambda _: None)
    assert outcome.odds == {} and outcome.answers == {}
    assert "not the environment" in outcome.verdict


def test_the_same_environment_is_recognised(suspect: Suspect) -> None:
    facts = random_play.look(config_for(LINE))
    same = {"train/data/obs_std": curve(facts.obs_std), "train/data/obs_noise_share": curve(0.0)}
    assert difference(facts, suspect({}, curves=same).readings) is None
    assert difference(facts, suspect({}, curves={"train/data/obs_std": curve(10 * facts.obs_std)}).readings)
    assert difference(facts, suspect({}, curves={"train/data/obs_noise_share": curve(0.9)}).readings)


def test_what_cannot_be_built_cannot_be_played() -> None:
    assert environment.can_make(config_for(LINE))
    assert not environment.can_make(config_for("NoSuchEnvironment-v7"))


def test_tables_and_constant_components_of_them_are_no_fault(suspect: Suspect) -> None:
    config = config_for("FrozenLake-v1", env_kwargs={"is_slippery": False})
    outcome = environment.run(PROBE, suspect({}, config, threshold=0.7), config, lambda _: None)
    assert "partial-observability" not in outcome.odds
    assert outcome.odds["actions-have-no-effect"] < 1


def test_episodes_are_counted_without_the_steps_that_reset() -> None:
    ends = np.array([[False], [True], [False], [False], [True]])
    valid = np.array([[True], [True], [False], [True], [True]])
    reward = np.array([[1.0], [2.0], [0.0], [3.0], [4.0]])
    play = random_play.Play(np.zeros((6, 1, 1)), np.zeros((6, 1)), reward, ends, np.zeros_like(ends), valid)
    returns, lengths = random_play._episodes(play)
    assert returns.tolist() == [3.0, 7.0] and lengths.tolist() == [2, 2]
