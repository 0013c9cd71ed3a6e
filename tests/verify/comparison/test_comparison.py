"""Comparisons of runs whose curves are known: sides, equal measures, and verdicts that claim no more than they may."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.plain import plain
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.verify.comparison.document import compare_runs
from gymnasium_solver.verify.comparison.files import write_comparison
from gymnasium_solver.verify.comparison.text import sections, to_markdown
from tests.made_runs import HEALTHY, STEPS, flat, line, write_run

REWARD = "val/roll/ep_rew_mean"


def reaching(steps: float, threshold: float = 475.0) -> dict[str, np.ndarray]:
    """A run that gets from 22 to the threshold at so many steps, and stays there."""
    curve = np.where(steps <= STEPS, threshold + 5, 22 + (threshold - 22) * STEPS / steps * 0.99)
    return {**HEALTHY, REWARD: curve, "train/roll/ep_rew_mean": curve}


def write_side(runs_dir: Path, steps: Sequence[float], first_seed: int = 1, **fields: Any) -> list[Run]:
    return [
        write_run(runs_dir, reaching(at), seed=first_seed + place, solved=bool(at < 50_000), **fields)
        for place, at in enumerate(steps)
    ]


@pytest.fixture
def two_sides(tmp_path: Path) -> list[Run]:
    slow = write_side(tmp_path, [30_000, 31_000, 33_000, 36_000], policy_lr=1e-4)
    return slow + write_side(tmp_path, [10_000, 12_000, 13_000, 15_000], policy_lr=1e-3)


def test_clear_difference_is_told_with_its_numbers(two_sides: list[Run]) -> None:
    document = compare_runs(two_sides)
    assert [side["name"] for side in document["sides"]] == ["policy_lr=0.0001", "policy_lr=0.001"]
    slow, fast = (side["results"] for side in document["sides"])
    assert slow["steps_to_threshold"]["iqm"] == 32_000  # of 30, 31, 33 and 36 thousand, the ends cut off
    assert fast["steps_to_threshold"]["median"] == 12_500
    assert (fast["seeds"], fast["solved"], fast["reached"]) == (4, 4, 4)
    verdict = document["verdict"]
    assert (verdict["outcome"], verdict["side"]) == ("better", "B")
    for words in ("B (policy_lr=0.001) is better", "475 in 12,500 steps against 32,000", "1.00", "4 seeds per side"):
        assert words in verdict["text"]


def test_baseline_by_name_turns_the_verdict_round(two_sides: list[Run]) -> None:
    document = compare_runs(two_sides, baseline="policy_lr=0.001")
    assert document["verdict"]["outcome"] == "worse"
    assert compare_runs(two_sides, baseline=two_sides[-1].run_id)["verdict"] == document["verdict"]
    with pytest.raises(ConfigError, match=r"policy_lr=0\.0001, policy_lr=0\.001"):
        compare_runs(two_sides, baseline="nonsense")


def test_no_difference_is_not_claimed_but_counted_in_seeds(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [20_000, 26_000, 33_000], policy_lr=1e-4)
    runs += write_side(tmp_path, [18_000, 25_000, 32_000], policy_lr=1e-3)
    verdict = compare_runs(runs)["verdict"]
    assert verdict["outcome"] == "no difference shown"
    assert "seeds per side would show it (power 0.8)" in verdict["text"]


def test_one_seed_a_side_claims_nothing(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [40_000], policy_lr=1e-4) + write_side(tmp_path, [5_000], policy_lr=1e-3)
    verdict = compare_runs(runs)["verdict"]
    assert verdict["outcome"] == "too few seeds"
    assert "One seed per side: no claim" in verdict["text"]
    assert "at least 3 seeds per side" in verdict["text"]


def test_seeds_that_miss_the_threshold_are_infinite_and_tested_by_rank(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [10_000, 11_000, 12_000, 13_000, 14_000], policy_lr=1e-3)
    runs += write_side(tmp_path, [90_000, 90_000, 90_000, 30_000, 90_000], policy_lr=1e-4)
    document = compare_runs(runs)
    found = document["sides"][1]["results"]["steps_to_threshold"]
    assert math.isinf(found["median"])
    assert document["tests"][0]["p_value"] == pytest.approx(2 / math.comb(10, 5))
    assert document["verdict"]["outcome"] == "worse"
    assert "with 1 of 5 seeds, against" in document["verdict"]["text"]
    assert "not reached" in to_markdown(document)
    assert plain(document)["sides"][1]["results"]["steps_to_threshold"]["median"] is None


def test_many_sides_are_corrected(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [20_000, 22_000, 24_000, 27_000], gamma=0.9)
    for gamma in (0.95, 0.97, 0.99):
        runs += write_side(tmp_path, [16_000, 18_000, 20_000, 22_000], gamma=gamma)
    tests = [test for test in compare_runs(runs)["tests"] if test["decides"]]
    assert all(test["p_adjusted"] == pytest.approx(3 * test["p_value"]) for test in tests)


def test_a_lone_seed_does_not_silence_the_other_sides(two_sides: list[Run], tmp_path: Path) -> None:
    document = compare_runs([*two_sides, *write_side(tmp_path, [20_000], policy_lr=1e-2)])
    assert document["verdict"]["outcome"] == "better"
    assert "C (policy_lr=0.01) reaches 475 in 20,000 steps" in document["verdict"]["text"]
    assert document["tests"][0]["p_adjusted"] == document["tests"][0]["p_value"]  # nothing was tested of C


def test_same_seed_twice_is_one_replicate(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [20_000, 21_000]) + write_side(tmp_path, [20_000])
    document = compare_runs(runs)
    assert document["sides"][0]["results"]["seeds"] == 2
    assert document["verdict"]["outcome"] == "one side"
    assert any("repeats a seed" in caveat for caveat in document["caveats"])


def test_sides_by_field(two_sides: list[Run]) -> None:
    assert len(compare_runs(two_sides, group_by="run")["sides"]) == 8
    document = compare_runs(two_sides, group_by="algo_id")
    assert document["verdict"]["outcome"] == "one side"
    assert any("mixes runs that differ in policy_lr" in caveat for caveat in document["caveats"])
    with pytest.raises(ConfigError, match="did you mean 'policy_lr'"):
        compare_runs(two_sides, group_by="policy_rl")


def test_what_differs_is_assessed_by_what_was_measured(tmp_path: Path) -> None:
    low = {**HEALTHY, "train/metrics/kl_divergence": flat(0.004)}
    high = {**HEALTHY, "train/metrics/kl_divergence": flat(0.021)}
    runs = [write_run(tmp_path, low, policy_lr=1e-3), write_run(tmp_path, high, policy_lr=3e-3, n_envs=32)]
    document = compare_runs(runs)
    differences = {found["field"]: found for found in document["differences"]}
    assert set(differences) == {"policy_lr", "n_envs"}
    sentence = differences["policy_lr"]["assessment"]["B"]
    assert "3 times larger" in sentence
    assert "median KL 0.021 against 0.004" in sentence
    assert "transitions, not 1,024" in differences["n_envs"]["assessment"]["B"]
    derived = {row["quantity"]: row["values"] for row in document["derived"]}
    assert derived["horizon 1/(1 − gamma)"]["A"] == pytest.approx(50)
    assert derived["gradient steps per 1,000 env steps"]["A"] == pytest.approx(100)


def test_losses_are_weighted_and_gradients_by_phase(tmp_path: Path) -> None:
    curves = {
        **HEALTHY,
        "train/loss/policy": flat(-0.5),
        "train/loss/value": flat(3.0),
        "train/loss/entropy": flat(-0.6),
        "train/hp/vf_coef": flat(0.5),
        "train/hp/ent_coef": flat(0.0),
        "train/metrics/grad_norm/all": line(1.0, 50.0),
    }
    document = compare_runs([write_run(tmp_path, curves), write_run(tmp_path, curves, seed=7, gamma=0.9)])
    terms = document["losses"]["A"]["late"]
    assert terms["policy"] == {"size": 0.5, "share": 0.25}
    assert terms["value"] == {"size": 1.5, "share": 0.75}
    phases = document["gradients"]["A"]["all"]
    assert phases["early"]["median"] < 17 < phases["middle"]["median"] < 34 < phases["late"]["median"]
    assert phases["late"]["low"] < phases["late"]["median"] < phases["late"]["high"]


def test_schedules_that_move_or_differ_are_drawn(tmp_path: Path) -> None:
    moving = {**HEALTHY, "train/hp/policy_lr": line(1e-3, 0), "train/hp/clip_range": flat(0.2)}
    still = {**HEALTHY, "train/hp/policy_lr": flat(1e-3), "train/hp/clip_range": flat(0.2)}
    document = compare_runs([write_run(tmp_path, moving), write_run(tmp_path, still, gamma=0.9)])
    assert set(document["schedules"]) == {"policy_lr"}
    assert document["schedules"]["policy_lr"]["A"]["values"][-1] == 0


def test_a_run_solved_early_is_not_beaten_by_one_that_only_trained_longer(tmp_path: Path) -> None:
    """Where one side has no evaluations training means decide; a run that stopped at its goal has low ones."""
    short, long = [], []
    for seed in range(3):
        steps = STEPS[:10]
        curves = {"train/roll/ep_rew_mean": np.linspace(20, 100 + seed, 50), REWARD: np.linspace(22, 500, 50)}
        run = write_run(tmp_path, curves, seed=seed, solved=True)
        rows = (run.path / "metrics.csv").read_text().splitlines()[: len(steps) + 1]
        (run.path / "metrics.csv").write_text("\n".join(rows) + "\n")
        short.append(Run(run.path))
        long.append(write_run(tmp_path, {"train/roll/ep_rew_mean": line(20, 90 + seed)}, seed=seed, gamma=0.9))
    document = compare_runs([*short, *long])
    assert document["measures"]["curve"] == "train/roll/ep_rew_mean"
    assert document["measures"]["end"] == STEPS[9]
    assert document["verdict"]["outcome"] != "better"
    assert any("which lag behind" in caveat for caveat in document["caveats"])


def test_rows_without_env_steps_are_numbered(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [20_000] * 3) + write_side(tmp_path, [20_000] * 3, gamma=0.9)
    for run in runs:
        table = (run.path / "metrics.csv").read_text().replace("train/cnt/env_steps", "foreign/steps", 1)
        (run.path / "metrics.csv").write_text(table)
    document = compare_runs([Run(run.path) for run in runs])
    assert document["sides"][0]["results"]["steps_to_threshold"]["iqm"] == 19
    assert document["verdict"]["outcome"] == "no difference shown"
    assert to_markdown(document)


def test_no_common_metric_is_said(tmp_path: Path) -> None:
    evaluated = write_run(tmp_path, {REWARD: line(22, 400)})
    trained = write_run(tmp_path, {"train/roll/ep_rew_mean": line(22, 400)}, gamma=0.9)
    verdict = compare_runs([evaluated, trained])["verdict"]
    assert verdict["outcome"] == "no common metric"
    assert REWARD in verdict["text"]


def test_a_side_without_data_is_said(tmp_path: Path) -> None:
    empty = write_run(tmp_path, {}, status="running", gamma=0.9)
    (empty.path / "metrics.csv").unlink()
    document = compare_runs([write_run(tmp_path), Run(empty.path)])
    assert document["verdict"]["outcome"] == "no data"
    assert sections(document)  # and it can still be shown


def test_unequal_conditions_are_named(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [20_000] * 3)
    runs += write_side(
        tmp_path, [20_000] * 3, first_seed=5, max_env_steps=60_000, env_kwargs={"sutton_barto_reward": True}
    )
    caveats = " ".join(compare_runs(runs)["caveats"])
    for words in ("Budgets differ (A 50,000, B 60,000)", "Seeds differ (A 1, 2, 3, B 5, 6, 7)", "env_kwargs"):
        assert words in caveats


def test_different_environments_are_refused(tmp_path: Path) -> None:
    runs = [write_run(tmp_path), write_run(tmp_path, ref="Acrobot-v1:ppo")]
    with pytest.raises(ConfigError, match=r"CartPole-v1.*Acrobot-v1"):
        compare_runs(runs)
    with pytest.raises(ConfigError, match="at least two runs"):
        compare_runs([runs[0], runs[0]])


def test_different_algorithms_share_what_they_share(tmp_path: Path) -> None:
    runs = [write_run(tmp_path), write_run(tmp_path, {REWARD: line(22, 300)}, ref="CartPole-v1:dqn")]
    document = compare_runs(runs)
    assert [side["name"] for side in document["sides"]] == ["ppo", "dqn"]
    values = {found["field"]: found["values"] for found in document["differences"]}
    assert values["clip_range"] == {"A": "0.2", "B": "does not apply"}
    assert any("B (dqn): no losses of" in line for line in document["missing"])
    assert "Not applicable to B:" in to_markdown(document)


def test_page_and_pictures(two_sides: list[Run], tmp_path: Path) -> None:
    document = compare_runs(two_sides)
    page = write_comparison(document, tmp_path / "out")
    names = {path.name for path in page.parent.iterdir()}
    assert names == {"comparison.md", "comparison.json", "curves.png", "gradients.png", "losses.png"}
    assert all((page.parent / name).read_bytes().startswith(b"\x89PNG") for name in names if name.endswith(".png"))
    assert "![curves](curves.png)" in page.read_text()


def test_intervals_end_where_steps_and_returns_can_be(tmp_path: Path) -> None:
    runs = write_side(tmp_path, [3_000, 20_000, 40_000], policy_lr=1e-4)
    runs += write_side(tmp_path, [3_000, 39_000, 40_000], policy_lr=1e-3)
    for side in compare_runs(runs)["sides"]:
        low, high = side["results"]["steps_to_threshold"]["interval"]
        assert (low, high) == (0.0, 50_000.0)


@pytest.mark.parametrize(("fields", "is_known"), [({}, True), ({"env_kwargs": {"sutton_barto_reward": True}}, False)])
def test_a_return_is_bounded_only_where_the_rewards_are_known(tmp_path: Path, fields: dict, is_known: bool) -> None:
    noisy = [write_run(tmp_path, HEALTHY | {REWARD: flat(at)}, seed=at, **fields) for at in (480, 499, 400)]
    side, *_ = compare_runs([*noisy, write_run(tmp_path, HEALTHY, gamma=0.5)])["sides"]
    high = side["results"]["final_reward"]["interval"][1]
    assert high == 500.0 if is_known else high > 500.0
