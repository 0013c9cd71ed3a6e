"""`gsolve noise-scale` and `gsolve score` as users call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gymnasium_solver.errors import EXIT_TARGET_MISSED
from tests.cli.conftest import Result
from tests.conftest import Fitted

GSolve = Callable[..., Result]
SMALL = {
    "n_envs": 4,
    "n_steps": 32,
    "batch_size": 32,
    "max_env_steps": 256,
    "max_episode_steps": 32,
    "eval_episodes": 1,
}


def test_a_score_card_in_every_form(gsolve: GSolve, fit: Callable[..., Fitted], tmp_path: Path) -> None:
    run = fit("CartPole-v1:ppo", **SMALL).run
    few = ("--episodes", "3", "--transfer", "CartPole-v1:gravity=12")
    text = gsolve("score", run.run_id, *few, "--out", "card.yaml", "--strict")
    assert text.code == EXIT_TARGET_MISSED
    assert text.out.startswith("Score card: CartPole-v1 ppo") and "spread over seeds" in text.out
    assert "playing" in text.err and "playing" not in text.out
    document = json.loads(gsolve("score", run.run_id, *few, "--json").out)
    assert yaml.safe_load((tmp_path / "card.yaml").read_text()) == document
    lax = gsolve("score", f"{run.run_id}/@last", *few, "--yaml")
    assert lax.code == 0 and yaml.safe_load(lax.out)["checkpoint"] == "last"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("score", "nothing"), 3, "there is no run 'nothing'"),
        (("score", "nothing", "--json", "--yaml"), 2, "choose one"),
        (("score", "nothing", "--episodes", "1"), 2, "--episodes"),
        (("noise-scale", "nothing"), 3, "there is no run 'nothing'"),
    ],
)
def test_bad_input_is_one_sentence(gsolve: GSolve, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = gsolve(*arguments)
    assert done.code == code and message in done.err and done.err.count("\n") == 1 and not done.out


def test_the_noise_scale_as_a_table_and_as_json(gsolve: GSolve, fit: Callable[..., Fitted]) -> None:
    run = fit("CartPole-v1:ppo", **SMALL).run
    done = gsolve("noise-scale", run.run_id, "--checkpoint", "last", "--rows", "512")
    assert (
        done.code == 0 and "CHECKPOINT" in done.out and "policy" in done.out and "arxiv.org/abs/1812.06162" in done.out
    )
    document = json.loads(gsolve("noise-scale", run.run_id, "--checkpoint", "last", "--rows", "512", "--json").out)
    assert document["run_id"] == run.run_id and document["batch_size"] == 32
    missing = gsolve("noise-scale", run.run_id, "--checkpoint", "epoch=99")
    assert missing.code == 3 and "no checkpoint 'epoch=99'" in missing.err
