"""From ENV:VARIANT and overrides to a config: where it is read, what overrides do, and one sentence for each error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml

from gymnasium_solver.config.load import SHIPPED, build_config, dump_yaml, listing, load_config, shipped, to_dict
from gymnasium_solver.config.schema import A2CConfig, PPOConfig, Schedule
from gymnasium_solver.errors import EXIT_NOT_FOUND, EXIT_USAGE, ConfigError, NotFoundError, SolverError

CARTPOLE = "CartPole-v1:ppo"  # shipped with n_envs 16, n_steps 64

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def user_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory, with an empty config/environments of the user's own."""
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "config" / "environments"
    directory.mkdir(parents=True)
    return directory


@pytest.fixture
def write(user_directory: Path) -> Write:
    def write(name: str, content: str) -> Path:
        path = user_directory / f"{name}.yaml"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def failure(ref: str, *overrides: str) -> SolverError:
    """The error of loading, which is one line."""
    with pytest.raises(SolverError) as caught:
        load_config(ref, overrides)
    assert "\n" not in str(caught.value)
    return caught.value


def refusal(*overrides: str, ref: str = CARTPOLE) -> str:
    """The sentence about a bad config, without the reference in front."""
    error = failure(ref, *overrides)
    assert type(error) is ConfigError
    assert error.exit_code == EXIT_USAGE == 2
    return str(error).removeprefix(f"{ref}: ")


# Where a reference leads


def test_reads_base_fields_and_the_block_of_the_variant(write: Write) -> None:
    write("Mine-v0", "env_id: CartPole-v1\ngamma: 0.9\nppo: {n_envs: 4}\na2c: {n_envs: 2, gamma: 0.8}\n")
    ppo, a2c = load_config("Mine-v0:ppo"), load_config("Mine-v0:a2c")
    assert isinstance(ppo, PPOConfig)
    assert isinstance(a2c, A2CConfig)
    assert (ppo.env_id, ppo.gamma, ppo.n_envs) == ("CartPole-v1", 0.9, 4)
    assert (a2c.env_id, a2c.gamma, a2c.n_envs) == ("CartPole-v1", 0.8, 2)


def test_env_id_defaults_to_the_name_of_the_file(write: Write) -> None:
    write("Mine-v0", "ppo: {}\n")
    assert load_config("Mine-v0:ppo").env_id == "Mine-v0"


def test_a_slash_in_the_id_is_a_dash_in_the_file_name(write: Write) -> None:
    write("ALE-Other-v5", "env_id: ALE/Other-v5\nppo: {n_envs: 3, n_steps: 64}\n")
    config = load_config("ALE/Other-v5:ppo")
    assert (config.env_id, config.n_envs) == ("ALE/Other-v5", 3)
    assert load_config("ALE/Pong-v5:ppo").env_kwargs["obs_type"] == "ram"


def test_a_class_keeps_its_colon() -> None:
    config = load_config("gymnasium_solver.envs.probes:ConstantReward:a2c")
    assert (config.env_id, config.algo_id) == ("gymnasium_solver.envs.probes:ConstantReward", "a2c")


def test_a_class_may_have_a_file(write: Write) -> None:
    write("my.module:Env", "env_id: my.module:Env\nppo: {n_envs: 5, n_steps: 64}\n")
    config = load_config("my.module:Env:ppo")
    assert (config.env_id, config.n_envs) == ("my.module:Env", 5)


def test_a_users_file_is_found_by_the_env_id_in_it(write: Write) -> None:
    write("mine", "env_id: my.module:Env\nppo: {n_envs: 5, n_steps: 64}\n")
    assert load_config("my.module:Env:ppo").n_envs == 5
    assert load_config("mine:ppo") == load_config("my.module:Env:ppo")


def test_a_variant_may_have_a_name_of_its_own(write: Write) -> None:
    write("CartPole-v1", "fast: {algo_id: a2c, n_envs: 2}\n")
    assert isinstance(load_config("CartPole-v1:fast"), A2CConfig)


def test_the_users_file_comes_before_the_shipped_one(write: Write) -> None:
    before = load_config(CARTPOLE)
    path = write("CartPole-v1", "ppo: {n_envs: 3, n_steps: 64}\n")
    assert load_config(CARTPOLE).n_envs == 3 != before.n_envs
    assert ("CartPole-v1", "ppo", path.relative_to(Path.cwd())) in shipped()
    assert [variant for env, variant, _ in shipped() if env == "CartPole-v1"].count("ppo") == 1


def test_a_variant_the_users_file_lacks_is_the_shipped_one(write: Write) -> None:
    before = load_config("CartPole-v1:a2c")
    write("CartPole-v1", "gamma: 0.5\nppo: {n_envs: 3, n_steps: 64}\n")
    assert load_config("CartPole-v1:a2c") == before
    assert ("CartPole-v1", "a2c", SHIPPED / "CartPole-v1.yaml") in shipped()


def test_an_algorithm_the_users_file_lacks_has_defaults(write: Write) -> None:
    write("Mine-v0", "ppo: {n_envs: 3, n_steps: 64}\n")
    config = load_config("Mine-v0:a2c")
    assert isinstance(config, A2CConfig)
    assert (config.env_id, config.n_envs) == ("Mine-v0", 16)


def test_an_explicit_directory_takes_the_place_of_the_users(write: Write, tmp_path: Path) -> None:
    write("CartPole-v1", "ppo: {n_envs: 3, n_steps: 64}\na2c: {n_envs: 3}\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "CartPole-v1.yaml").write_text("ppo: {n_envs: 5, n_steps: 64}\n")
    assert load_config(CARTPOLE, directory=other).n_envs == 5
    assert load_config("CartPole-v1:a2c", directory=other).n_envs == 16


def test_shipped_is_filtered_by_any_part_of_the_reference() -> None:
    assert {env for env, _, _ in shipped("cartpole")} == {"CartPole-v1"}
    assert {variant for _, variant, _ in shipped(":reinforce")} == {"reinforce"}
    assert shipped("no such thing") == []


# Overrides


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("gamma=0.5", "gamma", 0.5),
        (" gamma = 0.5 ", "gamma", 0.5),
        ("policy_lr=1e-3", "policy_lr", 0.001),
        ("max_env_steps=1e6", "max_env_steps", 1_000_000),
        ("max_env_steps=2_000_000", "max_env_steps", 2_000_000),
        ("normalize_obs=true", "normalize_obs", True),
        ("hidden_dims=[32, 16]", "hidden_dims", (32, 16)),
        ("hidden_dims=32", "hidden_dims", (32,)),
        ("activation=relu", "activation", "relu"),
        ("target_kl=0.02", "target_kl", 0.02),
        ("max_grad_norm=null", "max_grad_norm", None),
        ("max_grad_norm=", "max_grad_norm", None),
        ("env_kwargs={size: 3}", "env_kwargs", {"size": 3}),
        ("env_kwargs.size=3", "env_kwargs", {"size": 3}),
        ("env_kwargs.map.rows=[a=b]", "env_kwargs", {"map": {"rows": ["a=b"]}}),
        ("env_wrappers=[grey, {resize: 84}]", "env_wrappers", ["grey", {"resize": 84}]),
    ],
)
def test_an_override_has_the_type_of_its_field(override: str, field: str, value: Any) -> None:
    read = getattr(load_config(CARTPOLE, [override]), field)
    assert (read, type(read)) == (value, type(value))


def test_overrides_apply_in_order_and_leave_the_rest() -> None:
    before, after = load_config(CARTPOLE), load_config(CARTPOLE, ["gamma=0.5", "gamma=0.6"])
    assert to_dict(after) == to_dict(before) | {"gamma": 0.6}


def test_a_mapping_of_overrides_takes_values_and_dotted_names() -> None:
    config = load_config(CARTPOLE, {"gamma": 0.5, "policy_lr.end": 0.1, "target_kl": None})
    assert isinstance(config, PPOConfig)
    assert (config.gamma, config.target_kl) == (0.5, None)
    assert config.policy_lr == Schedule(start=2e-3, end=0.1)


def test_a_schedule_is_written_where_its_value_would_stand() -> None:
    config = load_config(CARTPOLE, ["policy_lr={start: 1e-3, end: 1e-5, schedule: cosine, warmup: 0.05, from: 0.1}"])
    assert config.policy_lr == Schedule(start=1e-3, end=1e-5, schedule="cosine", warmup=0.05, from_=0.1)


def test_a_dotted_override_changes_one_part_of_a_schedule() -> None:
    config = load_config(CARTPOLE, ["policy_lr.schedule=cosine", "policy_lr.from=0.5"])
    assert config.policy_lr == Schedule(start=2e-3, end=0, schedule="cosine", from_=0.5)


def test_a_dotted_override_makes_a_number_the_start_of_a_schedule() -> None:
    config = load_config("CartPole-v1:reinforce", ["policy_lr.end=1e-4"])
    assert config.policy_lr == Schedule(start=1e-2, end=1e-4)


def test_a_number_takes_the_place_of_a_schedule() -> None:
    assert load_config(CARTPOLE, ["policy_lr=1e-3"]).policy_lr == 1e-3


def test_overrides_do_not_stick_to_the_file() -> None:
    load_config(CARTPOLE, ["policy_lr.end=1", "env_kwargs.size=3"])
    assert load_config(CARTPOLE).policy_lr == Schedule(start=2e-3, end=0)


# What cannot be used: ConfigError, exit code 2


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("polcy_lr=3", "polcy_lr: unknown field (value 3); did you mean 'policy_lr'?"),
        ("qqq=3", "qqq: unknown field (value 3)"),
        ("returns=episode", "returns: unknown field (value 'episode')"),  # REINFORCE has it, PPO has not
        ("policy_lr.strt=1", "policy_lr.strt: unknown field (value 1); did you mean 'start'?"),
    ],
)
def test_unknown_field_suggests_the_nearest(override: str, sentence: str) -> None:
    assert refusal(override) == sentence


@pytest.mark.parametrize(
    ("override", "field", "value", "nearest"),
    [
        ("gamma=1.5", "gamma", "1.5", "1"),
        ("gamma=-0.5", "gamma", "-0.5", "0"),
        ("n_envs=0", "n_envs", "0", "1"),
        ("n_epochs=-2", "n_epochs", "-2", "1"),
        ("seed=-1", "seed", "-1", "0"),
        ("seed=2147483648", "seed", "2147483648", "2147483647"),
        ("hidden_dims=[64, 0]", "hidden_dims.1", "0", "1"),
        ("policy_lr={start: 1, from: -1}", "policy_lr.from", "-1", "0"),
    ],
)
def test_out_of_range_names_field_value_and_nearest(override: str, field: str, value: str, nearest: str) -> None:
    sentence = refusal(override)
    assert sentence.startswith(f"{field}: {value} is out of range")
    assert sentence.endswith(f"; the nearest valid value is {nearest}")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("policy_lr=-1", "policy_lr: must be >= 0, got -1; the nearest valid value is 0"),
        ("policy_lr.end=-1", "policy_lr: must be >= 0, got -1; the nearest valid value is 0"),
        ("value_lr={start: -1}", "value_lr: must be >= 0, got -1; the nearest valid value is 0"),
        ("clip_range=0", "clip_range: must be > 0, got 0; the default is 0.2"),
        (
            "target_kl=0",
            "target_kl: 0 is out of range (input should be greater than 0); leave it unset, or give a larger one",
        ),
        ("policy_lr={start: 1, from: 0.5, to: 0.2}", "policy_lr: `to` (0.2) must come after `from` (0.5)"),
    ],
)
def test_beyond_an_open_bound_or_a_schedules_bound(override: str, sentence: str) -> None:
    assert refusal(override) == sentence


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["batch_size=100"],
            "batch_size: 100 does not divide the rollout (n_envs 16 × n_steps 64 = 1024); the nearest that does is 128",
        ),
        (
            ["max_env_steps=1000"],
            "max_env_steps: 1000 is less than one rollout (n_envs 16 × n_steps 64 = 1024); use at least 1024",
        ),
    ],
)
def test_fields_that_do_not_fit_each_other(overrides: list[str], sentence: str) -> None:
    assert refusal(*overrides) == sentence


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("n_envs=many", "n_envs", "'many'"),
        ("n_envs=2.5", "n_envs", "2.5"),
        ("gamma=[1]", "gamma", "[1]"),
        ("gamma=.nan", "gamma", "nan"),
        ("normalize_obs=maybe", "normalize_obs", "'maybe'"),
        ("hidden_dims=abc", "hidden_dims", "'abc'"),
        ("env_kwargs=3", "env_kwargs", "3"),
        ("env_id=3", "env_id", "3"),
        ("gamma.end=0.1", "gamma", "{'start': 0.98, 'end': 0.1}"),
        ("policy_lr.end=abc", "policy_lr.end", "'abc'"),
        ("policy_lr=abc", "policy_lr", "'abc'"),
        ("value_lr=[1, 2]", "value_lr", "[1, 2]"),
        ("batch_size=abc", "batch_size", "'abc'"),
    ],
)
def test_wrong_type_names_field_and_value_once(override: str, field: str, value: str) -> None:
    sentence = refusal(override)
    assert sentence.startswith(f"{field}: {value} cannot be used (input should be ")
    assert sentence.count("cannot be used") == 1


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("optimizer=Adam", "adam"),
        ("activation=rellu", "relu"),
        ("policy_lr={start: 1, schedule: cosin}", "cosine"),
        ("algo_id=pp0", "ppo"),
    ],
)
def test_a_word_that_is_no_choice_suggests_the_nearest(override: str, suggestion: str) -> None:
    assert refusal(override).endswith(f"; did you mean '{suggestion}'?")


def test_an_algorithm_is_a_word() -> None:
    assert refusal("algo_id=[ppo]").startswith("algo_id: ['ppo'] is not ")


def test_a_schedule_without_start_says_so() -> None:
    assert refusal("policy_lr={end: 1}") == "policy_lr.start: missing; add it"


def test_several_mistakes_are_all_named_in_one_line() -> None:
    sentence = refusal("gamma=2", "n_envs=0", "foo=1")
    assert [name for name in ("gamma: 2", "n_envs: 0", "foo: unknown") if name not in sentence] == []


@pytest.mark.parametrize("override", ["gamma", "=3", " =3", ""])
def test_an_override_without_field_or_value(override: str) -> None:
    assert refusal(override) == f"--set {override!r} is not FIELD=VALUE; for example --set policy_lr=1e-3"


@pytest.mark.parametrize("override", ["gamma=[1", "gamma={a: b", "gamma=2026-13-45"])
def test_an_override_that_is_no_yaml(override: str) -> None:
    assert refusal(override).startswith(f"--set {override!r}")


def test_a_reference_without_variant_shows_one() -> None:
    assert refusal(ref="CartPole-v1") == (
        "'CartPole-v1' names no variant; write ENV:VARIANT, for example CartPole-v1:ppo"
    )


# Files that cannot be used: ConfigError, exit code 2


@pytest.mark.parametrize(
    ("content", "line"), [("ppo:\n  n_envs: [1\n  gamma: 1\n", 3), ("ppo: {}\n\tgamma: 1\n", 2), ("a: b: c\n", 1)]
)
def test_bad_yaml_names_file_and_line(write: Write, content: str, line: int) -> None:
    path = write("Mine-v0", content)
    sentence = refusal(ref="Mine-v0:ppo")
    assert sentence.startswith(f"{path.relative_to(Path.cwd())} line {line}: not valid YAML (")


@pytest.mark.parametrize("content", ["seed: 2026-13-45\nppo: {}\n", "env_id: Mine\x01\nppo: {}\n"])
def test_yaml_that_reads_but_makes_no_value_names_the_file(write: Write, content: str) -> None:
    path = write("Mine-v0", content)
    assert str(path.relative_to(Path.cwd())) in refusal(ref="Mine-v0:ppo")


def test_a_file_that_is_no_text_names_the_file(user_directory: Path) -> None:
    (user_directory / "Mine-v0.yaml").write_bytes(b"\xff\xfe\x00")
    assert "Mine-v0.yaml cannot be read" in refusal(ref="Mine-v0:ppo")


@pytest.mark.parametrize("content", ["\n", "- ppo\n", "ppo\n", "3\n"])
def test_a_file_that_is_no_mapping(write: Write, content: str) -> None:
    write("Mine-v0", content)
    assert refusal(ref="Mine-v0:ppo").endswith("Mine-v0.yaml is not a mapping of fields; start it with `env_id: …`")


@pytest.mark.parametrize("content", ["env_id: CartPole-v1\n", "env_kwargs: {size: 3}\npolicy_lr: {start: 1}\n"])
def test_a_file_without_variants(write: Write, content: str) -> None:
    write("Mine-v0", content)
    assert refusal(ref="Mine-v0:ppo").endswith("Mine-v0.yaml has no variant; add a block such as `ppo:`")


@pytest.mark.parametrize(
    ("content", "line", "name"),
    [
        ("gamma: 0.9\ngamma: 0.8\nppo: {}\n", 2, "gamma"),
        ("ppo: {n_envs: 2}\na2c: {}\nppo: {n_envs: 4}\n", 3, "ppo"),
        ("ppo:\n  n_envs: 2\n  n_envs: 4\n", 3, "n_envs"),
    ],
)
def test_what_is_written_twice_is_refused(write: Write, content: str, line: int, name: str) -> None:
    write("Mine-v0", content)
    assert f"Mine-v0.yaml line {line}: not valid YAML ({name} is given twice)" in refusal(ref="Mine-v0:ppo")


def test_merged_blocks_may_change_what_they_merge(write: Write) -> None:
    write("Mine-v0", "env_id: CartPole-v1\nppo: &p {n_envs: 2, gamma: 0.9}\nfast: {<<: *p, algo_id: ppo, gamma: 0.8}\n")
    config = load_config("Mine-v0:fast")
    assert (config.n_envs, config.gamma) == (2, 0.8)


def test_a_file_named_after_one_environment_must_not_configure_another(write: Write) -> None:
    write("CartPole-v1", "env_id: LunarLander-v3\nppo: {}\n")
    sentence = refusal()
    assert "env_id: the file is named after CartPole-v1, but configures 'LunarLander-v3'" in sentence
    assert "call it LunarLander-v3.yaml" in sentence


def test_an_empty_file_says_nothing(write: Write) -> None:
    """The shell makes one before `gsolve config CartPole-v1:ppo > config/environments/CartPole-v1.yaml` begins."""
    before = load_config(CARTPOLE)
    path = write("CartPole-v1", "")
    assert load_config(CARTPOLE) == before
    path.write_text(dump_yaml(load_config(CARTPOLE, ["gamma=0.9"])), encoding="utf-8")
    assert load_config(CARTPOLE).gamma == 0.9
    assert load_config("CartPole-v1:a2c").algo_id == "a2c"
    assert ("CartPole-v1", "ppo", path.relative_to(Path.cwd())) in shipped()


def test_a_broken_file_takes_no_others_away(write: Write) -> None:
    write("Broken-v0", "ppo: [\n")
    write("Mine-v0", "env_id: CartPole-v1\nppo: {}\n")
    assert {"CartPole-v1", "LunarLander-v3"} <= {env for env, _, _ in shipped()}
    assert load_config("Mine-v0:ppo").env_id == "CartPole-v1"
    assert [sentence.partition(" line")[0] for sentence in listing()[1].values()] == [
        "config/environments/Broken-v0.yaml"
    ]
    assert "Broken-v0.yaml" in refusal(ref="Broken-v0:ppo")


@pytest.mark.parametrize(
    ("ref", "field", "ours"),
    [
        (CARTPOLE, "learning_rate", "policy_lr"),
        (CARTPOLE, "lr", "policy_lr"),
        (CARTPOLE, "total_timesteps", "max_env_steps"),
        (CARTPOLE, "num_envs", "n_envs"),
        (CARTPOLE, "clip_coef", "clip_range"),
        (CARTPOLE, "entropy_coeff", "ent_coef"),
        ("CartPole-v1:dqn", "target_network_frequency", "target_update_interval"),
    ],
)
def test_names_of_other_libraries_are_known(ref: str, field: str, ours: str) -> None:
    assert f"{field}: unknown field (value 1); here it is called {ours!r}" in refusal(f"{field}=1", ref=ref)


def test_an_algorithm_is_chosen_by_the_variant() -> None:
    sentence = refusal("algo_id=dqn")
    assert sentence == "algo_id: its fields are those of ppo; for dqn write CartPole-v1:dqn"


def test_an_environment_that_a_script_registers_has_a_module_in_its_name() -> None:
    assert "one that your own module registers is MODULE:Nowhere-v0" in str(failure("Nowhere-v0:ppo"))


def test_a_variant_that_names_no_algorithm(write: Write) -> None:
    write("Mine-v0", "fast: {n_envs: 2}\n")
    sentence = refusal(ref="Mine-v0:fast")
    assert "Mine-v0.yaml: fast: neither a field nor a variant" in sentence
    assert "algo_id (one of ppo, a2c, reinforce, dqn" in sentence


def test_unknown_fields_of_a_file_are_errors_on_top_and_in_the_variant(write: Write) -> None:
    write("Mine-v0", "gama: 1\nppo: {n_env: 2}\n")
    sentence = refusal(ref="Mine-v0:ppo")
    assert "gama: unknown field (value 1); did you mean 'gamma'?" in sentence
    assert "n_env: unknown field (value 2); did you mean 'n_envs'?" in sentence


# What does not exist: NotFoundError, exit code 3


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("CartPole-v1:pppo", ["CartPole-v1 has no variant 'pppo'", "ppo, a2c, reinforce", "did you mean 'ppo'?"]),
        ("CartPole-v1:", ["CartPole-v1 has no variant ''", "ppo, a2c, reinforce"]),
        ("Blackjack-v1:pppo", ["Blackjack-v1 has no variant 'pppo'", "did you mean 'ppo'?"]),
        ("CartPole-v7:ppo", ["no environment 'CartPole-v7'", "did you mean 'CartPole-v1'?", "gsolve envs"]),
        ("Cartpol-v1:fast", ["no environment 'Cartpol-v1'", "did you mean 'CartPole-v1'?"]),
        ("qqqqqq:ppo", ["no environment 'qqqqqq'", "config/environments/qqqqqq.yaml would define it"]),
    ],
)
def test_unknown_variant_or_environment_suggests_the_nearest(ref: str, words: list[str]) -> None:
    error = failure(ref)
    assert type(error) is NotFoundError
    assert error.exit_code == EXIT_NOT_FOUND == 3
    assert [word for word in words if word not in str(error)] == []


def test_a_users_environment_is_suggested_too(write: Write) -> None:
    write("Warehouse-v0", "ppo: {}\n")
    assert "did you mean 'Warehouse-v0'?" in str(failure("Warehose-v0:ppo"))


def test_a_users_variant_is_suggested_too(write: Write) -> None:
    write("CartPole-v1", "careful: {algo_id: ppo}\n")
    sentence = str(failure("CartPole-v1:carefull"))
    assert (
        "choose from careful, ppo, a2c, reinforce, dqn, sac, ddpg, td3, q_learning, sarsa; did you mean 'careful'?"
        in sentence
    )


# Writing it down


def test_dumped_yaml_loads_to_the_same_config(write: Write) -> None:
    config = load_config(
        CARTPOLE,
        {
            "policy_lr": {"start": 1e-5, "end": 1e-7, "schedule": "exponential", "warmup": 100, "from": 0.1, "to": 0.9},
            "batch_size": 0.25,
            "env_kwargs": {"text": "no: yes", "flag": "on", "nested": {"list": [1, 2.5, None]}},
            "env_wrappers": ["grey", {"resize": 84}],
            "max_grad_norm": None,
        },
    )
    write("CartPole-v1", "ppo:\n" + indent(dump_yaml(config), "  "))
    assert load_config(CARTPOLE) == config


def test_arguments_without_bound_survive_being_written_down() -> None:
    config = load_config(CARTPOLE, {"env_kwargs": {"limit": float("inf")}})
    assert build_config(yaml.safe_load(dump_yaml(config)), "dump") == config


def test_dumped_yaml_has_the_names_users_write_and_every_field() -> None:
    config = load_config(CARTPOLE, ["policy_lr={start: 1, from: 0.5}"])
    written = yaml.safe_load(dump_yaml(config))
    assert written.keys() == type(config).model_fields.keys()
    assert written["policy_lr"] == {"start": 1, "end": 0, "schedule": "linear", "warmup": 0, "from": 0.5, "to": 1}


def test_build_config_names_its_source() -> None:
    with pytest.raises(ConfigError, match=r"^run-1/config\.json: env_id: missing"):
        build_config({"algo_id": "ppo"}, "run-1/config.json")


def test_a_class_without_an_algorithm_is_told_how_it_is_written() -> None:
    with pytest.raises(NotFoundError, match=r"write myenvs:Line:ppo, with the algorithm at the end"):
        load_config("myenvs:Line")
