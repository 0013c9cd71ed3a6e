"""Convergence against a baseline: a change for the worse is found, none is made up, and what cannot be told is said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config, shipped
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.regression import files
from gymnasium_solver.verify.regression.files import BASELINE, read_baseline, read_suite
from gymnasium_solver.verify.regression.regress import regress
from gymnasium_solver.verify.regression.verdict import Measured, change, is_identical, verdicts
from gymnasium_solver.verify.trials import Trained, Training

BUDGET, SLOT = 300_000, 5_000


def side(steps: Sequence[float], reward: Sequence[float] | None = None, budget: int = BUDGET) -> Measured:
    """Infinite steps: not solved."""
    solved = [bool(np.isfinite(x)) for x in steps]
    count = len(steps)
    return Measured(
        threshold=475.0,
        max_env_steps=budget,
        seeds=tuple(range(42, 42 + count)),
        solved=tuple(solved),
        env_steps=tuple(int(x) if ok else budget for x, ok in zip(steps, solved, strict=True)),
        reward=tuple(reward or [500.0] * count),
        seconds=(1.0,) * count,
    )


def learnt(rng: np.random.Generator, middle: float, spread: float, count: int = 5) -> Measured:
    """Seen at the evaluation after it happened."""
    steps = np.ceil(middle * np.exp(spread * rng.standard_normal(count)) / SLOT) * SLOT
    return side([x if x <= BUDGET else np.inf for x in steps])


def test_unchanged_configs_are_not_called_regressed() -> None:
    """200 repetitions of a suite of eight configs, baseline against itself: at most 5 % of suites may be wrong."""
    rng = np.random.default_rng(0)
    spreads = (0.1, 0.2, 0.25, 0.3, 0.3, 0.5, 0.8, 1.0)
    regressed = improved = 0
    for _ in range(200):
        pairs = {str(x): change(learnt(rng, 1e5, s), learnt(rng, 1e5, s), SLOT) for x, s in enumerate(spreads)}
        found = set(verdicts(pairs).values())
        regressed += "regressed" in found
        improved += "improved" in found
    assert regressed <= 16 and improved <= 16  # 10 expected at most; 16 is its 97.5 % point


def test_a_config_twice_as_slow_is_found_among_unchanged_ones() -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(50):
        pairs = {str(x): change(learnt(rng, 1e5, 0.15), learnt(rng, 1e5, 0.15), SLOT) for x in range(7)}
        pairs["slow"] = change(learnt(rng, 1e5, 0.15), learnt(rng, 2e5, 0.15), SLOT)
        found += verdicts(pairs)["slow"] == "regressed"
    assert found >= 45


def test_a_config_that_never_gets_there_any_more_has_regressed() -> None:
    """With five seeds, also among fifty configs: ranks alone could not show it."""
    before, now = side([20296, 15211, 10113, 15201, 15216]), side([np.inf] * 5, [9.0] * 5)
    pairs = {str(x): change(before, before, SLOT) for x in range(49)}
    assert verdicts(pairs | {"broken": change(before, now, SLOT)})["broken"] == "regressed"
    assert verdicts({"mended": change(now, before, SLOT)}) == {"mended": "improved"}  # by its return
    assert change(now, before, SLOT).metric == "return"


def test_the_interval_holds_the_change_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(2)
    held = [change(learnt(rng, 5e4, 0.3), learnt(rng, 7.5e4, 0.3), SLOT).most >= 0.5 for _ in range(400)]
    assert 0.92 <= np.mean(held) <= 1.0


def test_unchanged_is_claimed_only_where_a_slowdown_is_ruled_out() -> None:
    steady = side([100_000, 101_000, 99_000, 100_500, 99_500])
    wild = side([20_000, 300_000, 60_000, 110_000, 45_000])
    near = side([x + 1_000 for x in steady.env_steps])
    assert verdicts({"steady": change(steady, near, 1_000)}) == {"steady": "unchanged"}
    unclear = change(wild, side([30_000, 290_000, 50_000, 90_000, 70_000]), 1_000)
    assert verdicts({"wild": unclear}) == {"wild": "cannot tell"}
    assert unclear.most > 0.5 and (unclear.seeds_needed or 0) > 20


def test_a_small_difference_is_not_a_regression_however_sure() -> None:
    before, now = side([100_000 + x for x in range(5)]), side([105_000 + x for x in range(5)])
    assert verdicts({"a": change(before, now, 10)}) == {"a": "unchanged"}


def test_seeds_solved_at_the_same_evaluation_are_no_proof_of_no_spread() -> None:
    """One evaluation later on all seeds: between nothing and two slots slower, and no more is claimed."""
    one = change(side([10_000] * 5), side([15_000] * 5), 5_000)
    assert one.least < one.share < one.most and one.most > 0.6
    tied = change(side([10_000] * 5), side([10_010] * 5), 5_000)
    assert tied.most > 0.2  # the evaluation hides what happened before it


def test_the_same_seeds_with_the_same_results_are_identical() -> None:
    before = side([20296, 15211, 10113, 15201, 15216])
    assert is_identical(before, before)
    assert is_identical(before, side([20296, 15211, 10113]))  # the first of them
    assert not is_identical(before, side([20296, 15211, 10114]))
    assert not is_identical(side([20296, 15211, 10113]), before)  # others beside them


class Pretend:
    """Workers whose seeds take policy_lr's share of 1e-3 longer than the baseline's, or break."""

    error = ""

    def __init__(self, count: int | None = None, *, runs_dir: Path | None = None, group: str | None = None) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def results(self, trainings: Sequence[Training]) -> Iterator[Trained]:
        for training in trainings:
            rate = training.fields["policy_lr"]["start"]
            steps = round(15_000 * (1e-3 / rate) * (1 + training.seed % 5 / 10))
            budget = training.fields["max_env_steps"]
            yield Trained(
                training.label,
                training.seed,
                "failed" if self.error else "completed",
                error=self.error,
                seconds=1.0,
                env_steps=min(steps, budget),
                solved=steps <= budget,
                final_reward=500.0 if steps <= budget else 9.0,
                threshold=475.0,
            )


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> type[Pretend]:
    monkeypatch.setattr("gymnasium_solver.verify.regression.regress.Workers", Pretend)
    monkeypatch.setattr(Pretend, "error", "")
    return Pretend


def suite_of(tmp_path: Path) -> str:
    path = tmp_path / "suite.yaml"
    path.write_text(
        "- config: CartPole-v1:ppo\n  max_env_steps: 100000\n- config: CartPole-v1:ppo\n  set: {n_epochs: 4}\n",
        encoding="utf-8",
    )
    return str(path)


@pytest.fixture
def at_rate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The code or the config changed: the same entry now learns at this rate."""

    def change_rate(rate: float) -> None:
        def load(ref: str, changes: Any, **options: Any) -> Any:
            return load_config(ref, {**changes, "policy_lr": {"start": rate, "end": 0}}, **options)

        monkeypatch.setattr(files, "load_config", load)

    return change_rate


def test_a_baseline_is_written_compared_with_and_kept(tmp_path: Path, pretend: type[Pretend], at_rate: Any) -> None:
    suite, baseline = suite_of(tmp_path), tmp_path / "base.json"
    at_rate(1e-3)
    assert regress(suite, baseline=baseline, update=True)["exit_code"] == 0
    stored = read_baseline(baseline)
    assert list(stored["configs"]) == ["CartPole-v1:ppo max_env_steps=100000", "CartPole-v1:ppo n_epochs=4"]
    assert stored["made"]["packages"]["jax"] and "host" not in json.dumps(stored)

    same = regress(suite, baseline=baseline)
    assert same["exit_code"] == 0 and {row["verdict"] for row in same["configs"]} == {"identical"}
    more = regress(suite, baseline=baseline, seeds=9)
    assert {row["verdict"] for row in more["configs"]} == {"unchanged"}
    assert more["configs"][0]["now"]["seeds"] == tuple(range(42, 51))

    at_rate(1e-5)  # a hundredth: never gets there
    slow = regress(suite, baseline=baseline)
    assert slow["exit_code"] == 5 and {row["verdict"] for row in slow["configs"]} == {"regressed"}
    assert slow["configs"][0]["change"] > 2 and slow["configs"][0]["now"]["steps"] == [None] * 5
    at_rate(3e-3)
    fast = regress(suite, baseline=baseline)
    assert fast["exit_code"] == 0 and {row["verdict"] for row in fast["configs"]} == {"improved"}
    few = regress(suite, baseline=baseline, seeds=2)
    assert few["exit_code"] == 0 and {row["verdict"] for row in few["configs"]} == {"cannot tell"}


def test_configs_that_cannot_be_trained_or_have_no_baseline(
    tmp_path: Path, pretend: type[Pretend], at_rate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_rate(1e-3)
    suite, baseline = suite_of(tmp_path), tmp_path / "base.json"
    only = tmp_path / "only.yaml"
    only.write_text("- {config: CartPole-v1:ppo, max_env_steps: 100000}\n", encoding="utf-8")
    regress(str(only), baseline=baseline, update=True)
    document = regress(suite, baseline=baseline)
    assert document["exit_code"] == 0
    assert [row["verdict"] for row in document["configs"]] == ["identical", "no baseline"]
    assert "--update" in document["configs"][1]["sentence"]
    other = tmp_path / "other.yaml"
    other.write_text("- CartPole-v1:a2c\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"none of the configs of .* is in .*; record them with"):
        regress(str(other), baseline=baseline)

    monkeypatch.setattr(Pretend, "error", "the environment broke")
    document = regress(str(only), baseline=baseline)
    assert document["exit_code"] == 1 and document["configs"][0]["verdict"] == "failed"
    before = baseline.read_text()
    with pytest.raises(Exception, match="is unchanged: the environment broke"):
        regress(str(only), baseline=baseline, update=True)
    assert baseline.read_text() == before


def test_another_threshold_is_another_task(tmp_path: Path, pretend: type[Pretend], at_rate: Any) -> None:
    at_rate(1e-3)
    suite, baseline = suite_of(tmp_path), tmp_path / "base.json"
    regress(suite, baseline=baseline, update=True)
    baseline.write_text(baseline.read_text().replace('"threshold": 475.0', '"threshold": 195.0'))
    rows = regress(suite, baseline=baseline)["configs"]
    assert {row["verdict"] for row in rows} == {"cannot tell"} and "threshold was 195" in rows[0]["sentence"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CartPole-v1:ppo", "not a list"),
        ("- {configs: CartPole-v1:ppo}", "neither ENV:VARIANT nor a mapping"),
        ("- CartPole-v1:ppo\n- CartPole-v1:ppo\n", "twice"),
        ("- [", "not valid YAML"),
        ("- {config: CartPole-v1:ppo, set: {policy_rl: 1}}", "policy_rl: unknown field"),
    ],
)
def test_a_suite_that_cannot_be_used_is_said_plainly(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        read_suite(str(tmp_path / "suite.yaml"))


def test_a_baseline_that_cannot_be_used_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no suite 'nothing'"):
        read_suite("nothing")
    with pytest.raises(ConfigError, match="there is no baseline"):
        regress(baseline=tmp_path / "missing.json")
    mine = tmp_path / "my suite.yaml"
    mine.write_text("- CartPole-v1:a2c\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"create it with: gsolve regress '.*my suite\.yaml' --update --baseline "):
        regress(str(mine), baseline=tmp_path / "missing.json")
    (tmp_path / "broken.json").write_text('{"configs": {"a": {"seeds": 3}}}')
    with pytest.raises(ConfigError, match="is not a baseline"):
        regress(baseline=tmp_path / "broken.json")
    with pytest.raises(ConfigError, match="add --baseline FILE"):
        regress(update=True)


def test_the_shipped_baseline_is_of_shipped_configs_as_they_are() -> None:
    """A config that is given another budget has to be measured anew."""
    stored = read_baseline(BASELINE)["configs"]
    assert set(stored) <= {f"{env}:{variant}" for env, variant, _ in shipped()}
    for ref, row in stored.items():
        assert load_config(ref).max_env_steps == row["max_env_steps"]
    quick = [entry.name for entry in read_suite("quick")]
    assert len(quick) == 11 and set(quick) <= set(stored)
    assert all(len(stored[ref]["seeds"]) >= 5 for ref in quick)


@pytest.mark.slow
def test_a_hundredth_of_the_learning_rate_is_found_in_real_training(tmp_path: Path) -> None:
    suite, baseline = tmp_path / "suite.yaml", tmp_path / "base.json"
    suite.write_text("- {config: CartPole-v1:ppo, max_env_steps: 30000}\n", encoding="utf-8")
    runs = tmp_path / "runs"
    regress(str(suite), baseline=baseline, seeds=4, update=True, runs_dir=runs)
    again = regress(str(suite), baseline=baseline, seeds=1, runs_dir=runs)
    assert again["configs"][0]["verdict"] == "identical"
    text = baseline.read_text()
    slow = "CartPole-v1:ppo max_env_steps=30000 policy_lr=3e-05"
    baseline.write_text(text.replace("CartPole-v1:ppo max_env_steps=30000", slow))
    suite.write_text("- {config: CartPole-v1:ppo, max_env_steps: 30000, set: {policy_lr: 0.00003}}\n", encoding="utf-8")
    document = regress(str(suite), baseline=baseline, runs_dir=runs)
    assert document["configs"][0]["verdict"] == "regressed" and document["exit_code"] == 5
