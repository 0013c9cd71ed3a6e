"""What off-policy and tabular configs refuse, with field, value and remedy; and an epoch's default length."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.config.cards import all_cards
from gymnasium_solver.config.load import build_config, load_config, to_dict
from gymnasium_solver.config.schema import Config, OffPolicyConfig, Schedule
from gymnasium_solver.errors import ConfigError

OFF_POLICY = [card.algo_id for card in all_cards() if issubclass(card.config, OffPolicyConfig)]
TABULAR = ["q_learning", "sarsa"]
every_off_policy = pytest.mark.parametrize("algo_id", OFF_POLICY)


def make(algo_id: str = "dqn", **fields: Any) -> Config:
    return build_config({"env_id": "Any-v0", "algo_id": algo_id, "max_env_steps": 10_000, **fields}, "here")


def refusal(algo_id: str = "dqn", **fields: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        make(algo_id, **fields)
    message = str(caught.value)
    assert message.startswith("here: ")
    assert "\n" not in message
    return message.removeprefix("here: ")


def named(message: str) -> float:
    """The last number of a message: what to use instead."""
    return float(re.findall(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", message)[-1])


@every_off_policy
@pytest.mark.parametrize("learning_starts", [10_000, 25_000])
def test_a_learning_start_past_the_end(algo_id: str, learning_starts: int) -> None:
    message = refusal(algo_id, learning_starts=learning_starts)
    assert message.startswith(f"learning_starts: {learning_starts} is past the end of training (max_env_steps 10000)")
    assert message.endswith("use at most 1000")
    make(algo_id, learning_starts=named(message))


def test_a_learning_start_just_before_the_end() -> None:
    make(learning_starts=9_999)


@every_off_policy
def test_n_step_longer_than_the_buffer(algo_id: str) -> None:
    message = refusal(algo_id, n_step=5, buffer_size=5)
    assert message.startswith("n_step: 5 is longer than the buffer (buffer_size 5 holds 5 steps of each of 1 env")
    make(algo_id, n_step=5, buffer_size=named(message))


def test_the_buffer_is_shared_by_the_environments() -> None:
    message = refusal(n_step=5, buffer_size=40, n_envs=8, train_freq=3)
    assert "buffer_size 40 holds 5 steps of each of 8 environments" in message
    assert named(message) == 8 * (5 + 3 + 2)
    make(n_step=5, buffer_size=72, n_envs=8, train_freq=3)


@pytest.mark.parametrize(("n_envs", "train_freq", "buffer_size"), [(1, 4, 4), (4, 8, 20), (4, 8, 35)])
def test_a_buffer_smaller_than_what_comes_between_updates(n_envs: int, train_freq: int, buffer_size: int) -> None:
    message = refusal(n_envs=n_envs, train_freq=train_freq, buffer_size=buffer_size)
    assert message.startswith(f"buffer_size: {buffer_size} does not hold the steps of one update (n_envs {n_envs} ")
    assert f"train_freq {train_freq}" in message
    least = named(message)
    assert least == n_envs * (train_freq + 1)
    make(n_envs=n_envs, train_freq=train_freq, buffer_size=least)
    refusal(n_envs=n_envs, train_freq=train_freq, buffer_size=least - 1)


@every_off_policy
@pytest.mark.parametrize(
    ("update_to_data", "n_envs", "train_freq", "steps", "nearest"),
    [(0.3, 1, 1, "0.3", 1), (0.3, 1, 4, "1.2", 0.25), (1.3, 2, 1, "2.6", 1.5), (0.0001, 1, 1, "0.0001", 1)],
)
def test_update_to_data_that_gives_no_whole_steps(
    algo_id: str, update_to_data: float, n_envs: int, train_freq: int, steps: str, nearest: float
) -> None:
    sizes = {"n_envs": n_envs, "train_freq": train_freq}
    message = refusal(algo_id, update_to_data=update_to_data, **sizes)
    assert message.startswith(f"update_to_data: {update_to_data:g} × n_envs {n_envs} × train_freq {train_freq}")
    assert f"is {steps} gradient steps per update, not a whole number" in message
    assert named(message) == nearest
    make(algo_id, update_to_data=nearest, **sizes)


@pytest.mark.parametrize(
    ("update_to_data", "n_envs", "train_freq", "updates"),
    [(1, 1, 1, 1), (0.25, 4, 1, 1), (0.1, 10, 1, 1), (1 / 3, 3, 5, 5), (20, 1, 1, 20), (0.5, 1, 256, 128)],
)
def test_gradient_steps_of_an_update(update_to_data: float, n_envs: int, train_freq: int, updates: int) -> None:
    config = make(update_to_data=update_to_data, n_envs=n_envs, train_freq=train_freq)
    assert isinstance(config, OffPolicyConfig)
    assert config.updates == updates


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("update_to_data", 0, "the default is 1.0"),
        ("update_to_data", -1, "the default is 1.0"),
        ("priority_alpha", -0.1, "the nearest valid value is 0"),
        ("priority_alpha", 1.5, "the nearest valid value is 1"),
        ("priority_eps", -1e-6, "the default is 1e-06"),
        ("priority_eps", 0, "the default is 1e-06"),
        ("tau", 0, "the default is 0.005"),
        ("tau", 2, "the nearest valid value is 1"),
        ("buffer_size", 0, "the nearest valid value is 1"),
        ("batch_size", -3, "the nearest valid value is 1"),
        ("learning_starts", -1, "the nearest valid value is 0"),
        ("train_freq", 0, "the nearest valid value is 1"),
        ("n_step", 0, "the nearest valid value is 1"),
        ("reset_interval", 0, "the nearest valid value is 1"),
    ],
)
@every_off_policy
def test_numbers_out_of_range(algo_id: str, field: str, value: float, remedy: str) -> None:
    message = refusal(algo_id, **{field: value})
    assert message.startswith(f"{field}: {value!r} is out of range")
    assert message.endswith(remedy)


@pytest.mark.parametrize(
    ("algo_id", "field"), [*((a, "epsilon") for a in ("dqn", *TABULAR)), *((a, "priority_beta") for a in OFF_POLICY)]
)
@pytest.mark.parametrize(
    ("value", "got", "nearest"),
    [
        (1.5, "1.5", "1"),
        (-0.5, "-0.5", "0"),
        ({"start": 1.5, "end": 0}, "1.5", "1"),
        ({"start": 1, "end": 7}, "7", "1"),
    ],
)
def test_shares_are_between_zero_and_one(algo_id: str, field: str, value: Any, got: str, nearest: str) -> None:
    message = refusal(algo_id, **{field: value})
    assert message == f"{field}: must be >= 0 and <= 1, got {got}; the nearest valid value is {nearest}"


@pytest.mark.parametrize(("n_steps", "train_freq", "nearest"), [(10, 4, 8), (11, 4, 12), (1, 2, 2), (7, 100, 100)])
def test_an_epoch_is_whole_rounds_of_acting_and_learning(n_steps: int, train_freq: int, nearest: int) -> None:
    message = refusal(n_steps=n_steps, train_freq=train_freq)
    assert message == f"n_steps: {n_steps} is not a multiple of train_freq {train_freq}; the nearest is {nearest}"
    make(n_steps=nearest, train_freq=train_freq)


@pytest.mark.parametrize(
    ("begin", "finish"), [(0.5, 1000), (0.5, 5000), (5000, 0.1), (5000, 0.5), (20_000, 1.0)], ids=str
)
@pytest.mark.parametrize(("algo_id", "field"), [("dqn", "epsilon"), ("sac", "priority_beta"), ("td3", "policy_lr")])
def test_a_schedule_that_ends_before_it_begins(algo_id: str, field: str, begin: float, finish: float) -> None:
    """One of them a share of training, the other a number of steps: only together with max_env_steps is it seen."""
    message = refusal(algo_id, **{field: {"start": 0.9, "end": 0.1, "from": begin, "to": finish}})
    assert message.startswith(f"{field}: `to` ({finish:g}) must come after `from` ({begin:g})")
    assert "10000 env steps" in message


@pytest.mark.parametrize(("begin", "finish"), [(0.5, 5001), (4999, 0.5), (1000, 0.2), (0.1, 20_000)], ids=str)
def test_a_schedule_in_mixed_units_that_moves_forward(begin: float, finish: float) -> None:
    config = make(epsilon={"start": 0.9, "end": 0.1, "from": begin, "to": finish})
    schedule = config.epsilon  # type: ignore[attr-defined]
    assert isinstance(schedule, Schedule)
    assert schedule.at(0, 10_000) == 0.9


def test_a_schedule_in_one_unit_is_refused_whatever_the_training() -> None:
    assert "`to` (0.2) must come after `from` (0.5)" in refusal(epsilon={"start": 1, "from": 0.5, "to": 0.2})
    assert "`to` (20) must come after `from` (500)" in refusal(epsilon={"start": 1, "from": 500, "to": 20})


@every_off_policy
@pytest.mark.parametrize(
    ("n_envs", "train_freq", "max_env_steps", "n_steps"),
    [
        (1, 1, 10_000, 1000),
        (7, 1, 10_000, 142),  # 994 env steps
        (1, 256, 10_000, 768),  # three rounds
        (8, 64, 10_000, 64),  # one round of 512; two would be more than a thousand
        (4, 500, 10_000, 500),  # never less than one
        (1, 1, 500, 500),  # not more than there is
        (2, 3, 500, 249),
    ],
)
def test_an_epoch_is_about_a_thousand_env_steps(
    algo_id: str, n_envs: int, train_freq: int, max_env_steps: int, n_steps: int
) -> None:
    sizes = {"n_envs": n_envs, "train_freq": train_freq, "max_env_steps": max_env_steps, "learning_starts": 10}
    assert make(algo_id, **sizes).n_steps == n_steps
    assert make(algo_id, **sizes, n_steps=None).n_steps == n_steps
    texts = {name: str(size) for name, size in sizes.items()}
    assert make(algo_id, **texts).n_steps == n_steps, "as written in a file or on a command line"
    assert make(algo_id, **sizes, n_steps=train_freq).n_steps == train_freq, "what is given holds"


@pytest.mark.parametrize("name", ["n_envs", "train_freq", "max_env_steps"])
@pytest.mark.parametrize("value", ["many", None, [1], 2.5, True, 0, -3])
def test_what_the_default_epoch_is_made_of_is_named_when_it_is_wrong(name: str, value: Any) -> None:
    message = refusal(**{name: value})
    assert message.startswith(f"{name}: ")
    assert "n_steps" not in message


def test_an_epoch_longer_than_training() -> None:
    message = refusal(n_envs=20_000, update_to_data=1 / 20_000)
    assert message.startswith("max_env_steps: 10000 is less than one ")
    assert "(n_envs 20000 × n_steps 1 = 20000)" in message
    assert message.endswith("use at least 20000")


def test_ddpg_has_one_critic() -> None:
    assert refusal("ddpg", n_critics=2).startswith("n_critics: 2 is out of range")
    assert make("td3").n_critics == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["normalize_obs", "normalize_reward"])
@pytest.mark.parametrize("algo_id", TABULAR)
def test_a_table_normalises_nothing(algo_id: str, field: str) -> None:
    assert refusal(algo_id, **{field: True}) == f"{field}: a table has no use for it; leave it out"
    make(algo_id, **{field: False})


@pytest.mark.parametrize("algo_id", TABULAR)
def test_a_table_has_no_network(algo_id: str) -> None:
    assert refusal(algo_id, hidden_dims=[64]).startswith("hidden_dims: unknown field")


@pytest.mark.parametrize("algo_id", TABULAR)
@pytest.mark.parametrize("value", [1.5, 0, -0.1, {"start": 2, "end": 0.1}])
def test_the_step_of_a_table_corrects_at_most_the_whole_error(algo_id: str, value: Any) -> None:
    got = value["start"] if isinstance(value, dict) else value
    assert refusal(algo_id, policy_lr=value) == f"policy_lr: must be > 0 and <= 1, got {got:g}; the default is 0.1"
    assert "must be >= 0 and <= 1, got 3" in refusal(algo_id, policy_lr={"start": 1, "end": 3})
    make(algo_id, policy_lr=1)
    make(algo_id, policy_lr={"start": 1, "end": 0})


TAU = (
    "tau: 0.02 has no effect while target_update_interval is 1000; set target_update_interval to null, or leave tau out"
)


def vain(*overrides: str, ref: str = "LunarLander-v3:dqn", directory: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(ref, overrides, directory)
    return str(caught.value).removeprefix(f"{ref}: ")


def test_a_polyak_factor_beside_an_interval_is_refused() -> None:
    assert vain("tau=0.02") == TAU
    assert vain("tau=0.005").startswith("tau: 0.005 has no effect"), "the default too, where it is asked for"
    assert vain("tau=0.02", "target_update_interval=700").startswith("tau: 0.02 has no effect while target_update_int")
    load_config("LunarLander-v3:dqn", ["tau=1"])  # takes all of it over, as an interval does
    heard = load_config("LunarLander-v3:dqn", ["tau=0.02", "target_update_interval=null"])
    assert (heard.tau, heard.target_update_interval) == (0.02, None)  # type: ignore[attr-defined]
    assert load_config("Pendulum-v1:td3", ["tau=0.01"]).tau == 0.01  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["priority_alpha=0.5", "priority_beta=0.5", "priority_eps=1e-3"])
@pytest.mark.parametrize("ref", ["LunarLander-v3:dqn", "Pendulum-v1:sac"])
def test_priorities_without_prioritised_replay_are_refused(ref: str, field: str) -> None:
    name, value = field.split("=")
    assert vain(field, ref=ref) == (
        f"{name}: {float(value):g} has no effect while prioritized_replay is false; set prioritized_replay to true, or "
        f"leave {name} out"
    )
    assert vain("priority_beta.start=0.1", ref=ref).startswith("priority_beta: its schedule has no effect")
    load_config(ref, [field, "prioritized_replay=true"])


def test_a_file_is_read_the_same_way(tmp_path: Path) -> None:
    text = "env_id: CartPole-v1\ndqn: {tau: 0.02}\nslow: {algo_id: dqn, tau: 0.02, target_update_interval: null}\n"
    (tmp_path / "CartPole-v1.yaml").write_text(text)
    assert vain(ref="CartPole-v1:dqn", directory=tmp_path) == TAU
    # An interval asked for puts the file's factor out of force; the resolved config does not keep it.
    config: Any = load_config("CartPole-v1:slow", ["target_update_interval=500"], tmp_path)
    assert (config.tau, config.target_update_interval) == (0.005, 500)
    # As commands that are put together from a run's differences write it.
    assert load_config("CartPole-v1:slow", ["target_update_interval=500", "tau=0.005"], tmp_path) == config


def test_what_a_run_was_trained_with_still_loads() -> None:
    """config.json names every field, also those that were asked for in vain before that was refused."""
    kept = to_dict(make("dqn"))
    for fields in ({}, {"tau": 0.02}, {"priority_alpha": 0.5}):
        assert to_dict(build_config(kept | fields, "run/config.json")) == kept | fields
