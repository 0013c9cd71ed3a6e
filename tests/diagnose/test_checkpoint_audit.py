"""Checkpoints with one planted fault each give its finding; those of really trained runs give none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.diagnose.checkpoints.audit import Audit, audit
from gymnasium_solver.runs.reader import Run

Arrays = dict[str, np.ndarray]

SMALL: dict[str, Any] = {"hidden_dims": [16, 16], "eval_episodes": 1, "n_envs": 4}
REPLAY = SMALL | {"learning_starts": 100, "buffer_size": 2000, "max_env_steps": 800, "batch_size": 32, "n_steps": 48}
SHIPPED = {
    "ppo": ("CartPole-v1:ppo", SMALL | {"max_env_steps": 2048, "n_steps": 128}),
    "a2c": ("CartPole-v1:a2c", SMALL | {"max_env_steps": 2048}),
    "reinforce": ("CartPole-v1:reinforce", SMALL | {"max_env_steps": 4096, "n_steps": 32}),
    "gaussian ppo": ("Pendulum-v1:ppo", SMALL | {"max_env_steps": 2048, "n_steps": 128, "normalize_obs": True}),
    "dqn": ("CartPole-v1:dqn", REPLAY | {"target_update_interval": 200}),
    "ddpg": ("Pendulum-v1:ddpg", REPLAY),
    "td3": ("Pendulum-v1:td3", REPLAY),
    "sac": ("Pendulum-v1:sac", REPLAY),
    "q_learning": ("FrozenLake-v1:q_learning", {"max_env_steps": 2000, "eval_episodes": 1}),
    "sarsa": ("FrozenLake-v1:sarsa", {"max_env_steps": 2000, "eval_episodes": 1}),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """A short run of a shipped config, trained once."""
    runs: dict[str, Run] = {}

    def get(name: str) -> Run:
        if name not in runs:
            from gymnasium_solver.config.load import load_config
            from gymnasium_solver.train.session import train

            ref, overrides = SHIPPED[name]
            directory = tmp_path_factory.mktemp("runs")
            runs[name] = train(load_config(ref, overrides), runs_dir=directory, command=["test"], report=False)
        return runs[name]

    return get


def parts_of(run: Run) -> tuple[Arrays, dict[str, Any], Arrays]:
    """The last checkpoint, its metadata as `gsolve inspect` completes it, and the arrays of the first."""
    arrays, meta = run.read_checkpoint("last")
    earlier, before = run.read_checkpoint(run.checkpoints()[-1])
    meta |= {"config": run.config, "earlier_progress": before["progress"]}
    return {name: array.copy() for name, array in arrays.items()}, meta, earlier


def found(result: Audit, kind: str) -> Any:
    matching = [finding for finding in result.findings if finding.kind == kind]
    assert matching, f"no {kind} in {[(f.kind, f.severity) for f in result.findings]}"
    return matching[0]


def worrying(result: Audit) -> list[tuple[str, str]]:
    return [(finding.kind, finding.what) for finding in result.findings if finding.severity != "info"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_healthy_checkpoint_gives_no_finding_above_info(trained: Callable[[str], Run], name: str) -> None:
    arrays, meta, earlier = parts_of(trained(name))
    result = audit(arrays, meta, earlier=earlier)
    assert worrying(result) == []
    assert sum(part.values for part in result.parts) == sum(
        array.size for key, array in arrays.items() if not key.startswith("replay/")
    )


def test_parts_in_numbers() -> None:
    arrays = {
        "params/actor_head/weight": np.array([[3.0, 0.0], [0.0, 4.0]], np.float32),
        "params/actor_head/bias": np.array([np.nan, 0.0], np.float32),
        "optimizer/count": np.array(7, np.int32),
    }
    earlier = {**arrays, "params/actor_head/bias": np.zeros(2, np.float32)}
    head, optimizer = audit(arrays, {}, earlier=earlier).parts
    assert (head.name, head.tensors, head.values, head.is_trained) == ("actor_head", 2, 6, True)
    assert (head.norm, head.largest, head.non_finite, head.zero_share) == (5.0, 4.0, 1, 0.5)
    assert (optimizer.name, optimizer.values, optimizer.norm, optimizer.is_trained) == ("optimizer", 1, 0.0, False)


def test_drift_is_relative_and_by_step() -> None:
    earlier = {"params/critic_head/weight": np.array([[3.0], [4.0]], np.float32)}
    arrays = {"params/critic_head/weight": np.array([[3.0], [9.0]], np.float32)}
    meta = {"progress": {"updates": 60}, "earlier_progress": {"updates": 10}}
    (part,) = audit(arrays, meta, earlier=earlier).parts
    assert part.drift == pytest.approx(1.0)
    assert part.drift_per_step == pytest.approx(0.02)


# ---- planted faults, in a checkpoint that is otherwise as it was trained


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_broken_numbers_are_named_and_counted(trained: Callable[[str], Run], value: float) -> None:
    arrays, meta, _ = parts_of(trained("ppo"))
    arrays["params/trunk/policy/dense/1/weight"][0, :3] = value
    arrays["optimizer/nu"][5] = value
    result = audit(arrays, meta)
    finding = found(result, "non-finite-parameters")
    assert (finding.severity, finding.value) == ("critical", 3)
    assert finding.where == ("params/trunk/policy/dense/1/weight",)
    assert found(result, "non-finite-optimizer-state").severity == "critical"
    assert result.findings[0].severity == "critical"  # the worst first
    assert not result.is_healthy


def test_a_layer_of_zeros(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("ppo"))
    arrays["params/actor_head/weight"][:] = 0
    assert found(audit(arrays, meta), "zero-layer").where == ("params/actor_head",)


@pytest.mark.parametrize("direction", ["incoming", "outgoing"])
@pytest.mark.parametrize(("count", "severity"), [(2, "info"), (5, "low"), (9, "medium")])
def test_units_without_weights_are_dead(
    trained: Callable[[str], Run], direction: str, count: int, severity: str
) -> None:
    arrays, meta, _ = parts_of(trained("ppo"))
    if direction == "incoming":
        arrays["params/trunk/policy/dense/0/weight"][:, :count] = 0
    else:
        arrays["params/trunk/policy/dense/1/weight"][:count] = 1e-12
    finding = found(audit(arrays, meta), "dead-units")
    assert finding.where == ("params/trunk/policy/dense/0",)
    assert finding.value == count / 16
    assert finding.severity == severity


def test_outgoing_weights_are_those_of_all_heads_that_read_the_unit() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "params/trunk/shared/dense/0/weight": rng.standard_normal((4, 8)).astype(np.float32),
        "params/trunk/shared/dense/0/bias": np.zeros(8, np.float32),
        "params/actor_head/weight": rng.standard_normal((8, 2)).astype(np.float32),
        "params/critic_head/weight": rng.standard_normal((8, 1)).astype(np.float32),
    }
    arrays["params/actor_head/weight"][3] = 0
    assert not audit(arrays, {}).findings  # the critic still reads it
    arrays["params/critic_head/weight"][3] = 0
    assert found(audit(arrays, {}), "dead-units").value == 1 / 8


def relu_network(bias: float) -> Arrays:
    rng = np.random.default_rng(1)
    return {
        "obs_statistics/mean": np.zeros(4, np.float32),
        "obs_statistics/var": np.ones(4, np.float32),
        "obs_statistics/count": np.array(100, np.float32),
        "params/trunk/dense/0/weight": rng.uniform(-0.5, 0.5, (4, 8)).astype(np.float32),
        "params/trunk/dense/0/bias": np.full(8, bias, np.float32),
        "params/trunk/dense/1/weight": rng.uniform(-0.5, 0.5, (8, 8)).astype(np.float32),
        "params/trunk/dense/1/bias": np.zeros(8, np.float32),
        "params/critic_head/weight": rng.uniform(-0.5, 0.5, (8, 2)).astype(np.float32),
        "params/critic_head/bias": np.zeros(2, np.float32),
    }


def test_a_relu_that_cannot_fire_for_normalised_inputs() -> None:
    relu = {"config": {"activation": "relu", "clip_obs": 10.0}}
    # |x| ≤ 10 and |w| ≤ 0.5 in 4 inputs: 20 at most.
    result = audit(relu_network(-21.0), relu)
    assert [finding.value for finding in result.findings if finding.kind == "dead-units"] == [1.0, 1.0]
    assert found(result, "dead-units").severity == "high"
    assert not audit(relu_network(-1.0), relu).findings
    assert not audit(relu_network(-21.0), {"config": {"activation": "tanh"}}).findings
    unknown = {name: array for name, array in relu_network(-21.0).items() if "obs_statistics" not in name}
    assert not audit(unknown, relu).findings  # observations of any size: no judgement


def test_a_relu_behind_a_relu_is_dead_if_it_is_only_held_down() -> None:
    arrays = relu_network(0.0)
    arrays["params/trunk/dense/1/weight"][:, 2] = -np.abs(arrays["params/trunk/dense/1/weight"][:, 2])
    finding = found(audit(arrays, {"config": {"activation": "relu"}}), "dead-units")
    assert finding.where == ("params/trunk/dense/1",)
    assert finding.value == 1 / 8


@pytest.mark.parametrize("outputs_first", [False, True])
def test_channels_of_a_convolution_are_followed_into_the_dense_layer(outputs_first: bool) -> None:
    rng = np.random.default_rng(0)
    kernels = rng.uniform(-0.1, 0.1, (3, 3, 4, 8)).astype(np.float32)
    dense = rng.uniform(-0.1, 0.1, (2, 2, 8, 16)).astype(np.float32)  # 2 × 2 pixels of 8 channels
    head = rng.uniform(-0.1, 0.1, (16, 2)).astype(np.float32)
    dense[:, :, [1, 5]] = 0
    if outputs_first:
        arrays = {
            "net.0.weight": kernels.transpose(3, 2, 0, 1),
            "net.3.weight": dense.transpose(3, 2, 0, 1).reshape(16, -1),
            "net.5.weight": head.T,
        }
    else:
        arrays = {
            "params/trunk/convolutions/0/weight": kernels,
            "params/trunk/dense/0/weight": dense.reshape(-1, 16),
            "params/critic_head/weight": head,
        }
    finding = found(audit(arrays, {}), "dead-units")
    assert finding.where == (("net.0",) if outputs_first else ("params/trunk/convolutions/0",))
    assert finding.value == 2 / 8


def test_units_that_are_copies_of_another() -> None:
    arrays = relu_network(0.0)
    arrays["params/trunk/dense/0/weight"][:] = 0.3  # a constant initialisation
    finding = found(audit(arrays, {}), "duplicate-units")
    assert (finding.severity, finding.value) == ("high", 7 / 8)
    arrays["params/trunk/dense/0/bias"][:] = np.linspace(-1, 1, 8)  # the same weights at other thresholds
    assert not audit(arrays, {}).findings


def test_a_part_that_stands_still_while_others_move(trained: Callable[[str], Run]) -> None:
    arrays, meta, earlier = parts_of(trained("ppo"))
    name = "params/trunk/value/dense/0/weight"
    arrays[name] = earlier[name]
    finding = found(audit(arrays, meta, earlier=earlier), "frozen-part")
    assert (finding.severity, finding.where) == ("high", (name,))


def test_nothing_moves(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("ppo"))
    assert found(audit(arrays, meta, earlier=arrays), "parameters-unchanged").severity == "critical"
    meta["earlier_progress"] = meta["progress"]  # the same moment
    assert worrying(audit(arrays, meta, earlier=arrays)) == []


def test_an_optimizer_that_was_not_restored(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("sac"))
    arrays["optimizer/critic/count"][...] = 0
    finding = found(audit(arrays, meta), "optimizer-never-stepped")
    assert (finding.severity, finding.where) == ("high", ("critic",))
    arrays["optimizer/critic/count"][...] = meta["progress"]["updates"] // 3
    assert found(audit(arrays, meta), "optimizer-steps-mismatch").value == pytest.approx(1 / 3, abs=0.02)


def test_a_delayed_policy_has_fewer_steps(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("td3"))
    assert arrays["optimizer/actor/count"] == arrays["optimizer/critic/count"] // 2
    meta["config"] = {**meta["config"], "policy_delay": 1}
    assert found(audit(arrays, meta), "optimizer-steps-mismatch").where == ("actor",)


def test_no_gradient_reaches_the_optimizer(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("ppo"))
    whole = {**arrays, "optimizer/nu": np.zeros_like(arrays["optimizer/nu"])}
    assert found(audit(whole, meta), "optimizer-without-gradient").severity == "high"
    # Parameters lie in the vector in the order of their names: the heads come first.
    stop = sum(array.size for name, array in arrays.items() if name.startswith("params/actor_head/"))
    arrays["optimizer/nu"][:stop] = 0
    arrays["optimizer/nu"][-16 * 16 :] = 0  # the last weight, of 16 by 16
    arrays["optimizer/nu"][-16 * 16 - 16 : -16 * 16] = 0  # and its bias before it
    result = audit(arrays, meta)
    assert found(result, "part-without-gradient").where == ("actor_head", "params/trunk/value/dense/1")
    assert "dead-units" not in {finding.kind for finding in result.findings}  # a layer as a whole is told once


def test_an_optimizer_that_does_not_count_its_steps(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("ppo"))
    del arrays["optimizer/count"], arrays["optimizer/mu"]  # as RMSProp's
    assert worrying(audit(arrays, meta)) == []
    arrays["optimizer/nu"][:] = 0
    assert found(audit(arrays, meta), "optimizer-without-gradient").severity == "high"


def test_a_value_that_is_not_trained_on_purpose(trained: Callable[[str], Run]) -> None:
    arrays, meta, earlier = parts_of(trained("reinforce"))
    first, second = (sum(a.size for n, a in arrays.items() if n.startswith(p)) for p in ("params/actor", "params/crit"))
    arrays["optimizer/nu"][first : first + second] = 0
    arrays["optimizer/count"][...] = meta["progress"]["updates"] = 200
    arrays["params/critic_head/weight"] = earlier["params/critic_head/weight"]
    assert {kind for kind, _ in worrying(audit(arrays, meta, earlier=earlier))} == {
        "part-without-gradient",
        "frozen-part",
    }
    meta["config"] = {**meta["config"], "baseline": "none"}
    assert worrying(audit(arrays, meta, earlier=earlier)) == []


@pytest.mark.parametrize("name", ["dqn", "sac", "td3"])
def test_a_target_network_that_is_the_online_one(trained: Callable[[str], Run], name: str) -> None:
    arrays, meta, earlier = parts_of(trained(name))
    stale = {**arrays, **{key: earlier[key] for key in earlier if key.startswith("target/")}}
    assert found(audit(stale, meta, earlier=earlier), "target-never-moved").severity == "high"
    for key in [key for key in arrays if key.startswith("target/")]:
        rest = key.removeprefix("target/")
        arrays[key] = arrays.get(f"params/{rest}", arrays.get(f"params/critic/{rest}"))
    assert found(audit(arrays, meta), "target-equals-online").severity == ("medium" if name == "dqn" else "high")
    meta["progress"] = {**meta["progress"], "updates": 0}  # before learning starts they are rightly equal
    assert "target-equals-online" not in {finding.kind for finding in audit(arrays, meta).findings}


@pytest.mark.parametrize(
    ("leaf", "value", "severity"),
    [("var", -1.0, "critical"), ("mean", np.nan, "critical"), ("var", np.inf, "critical"), ("count", 0.0, "high")],
)
def test_observation_statistics(trained: Callable[[str], Run], leaf: str, value: float, severity: str) -> None:
    arrays, meta, _ = parts_of(trained("gaussian ppo"))
    arrays[f"obs_statistics/{leaf}"][...] = value
    assert found(audit(arrays, meta), "observation-statistics-degenerate").severity == severity


def test_observations_that_never_change(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("gaussian ppo"))
    arrays["obs_statistics/var"][1] = 0
    finding = found(audit(arrays, meta), "observation-statistics-degenerate")
    assert (finding.severity, finding.value) == ("info", pytest.approx(1 / 3))
    arrays["obs_statistics/var"][:] = 0
    assert found(audit(arrays, meta), "observation-statistics-degenerate").severity == "high"
    arrays["obs_statistics/var"][:] = 1
    arrays["obs_statistics/count"][...] = 10
    assert found(audit(arrays, meta), "observation-statistics-behind").severity == "medium"


@pytest.mark.parametrize(("times", "severity"), [(1, None), (100, "info"), (1000, "medium"), (1e5, "high")])
def test_weights_that_exploded(times: float, severity: str | None) -> None:
    arrays = relu_network(0.0)
    weight = arrays["params/critic_head/weight"]
    weight *= times / np.sqrt(np.mean(weight**2) * 8)
    findings = audit(arrays, {}).findings
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert not findings or findings[0].value == pytest.approx(times, rel=1e-4)


@pytest.mark.parametrize(("value", "severity"), [(-1.0, None), (-6.0, "medium"), (3.0, "medium"), (-20.0, "high")])
def test_log_std_out_of_range(value: float, severity: str | None) -> None:
    for name in ("params/actor_head/log_std", "actor_logstd", "log_std"):
        findings = audit({name: np.full((1, 2), value, np.float32)}, {}).findings
        assert [finding.severity for finding in findings] == ([severity] if severity else [])


def test_state_dependent_log_std_adds_up_over_units() -> None:
    sde = np.full((1024, 1), -6.0, np.float32)  # 1024 units: 3.5 more
    assert not audit({"params/actor/actor_head/log_std": sde}, {}).findings
    assert audit({"params/actor/actor_head/log_std": sde - 4}, {}).findings


def test_temperature_out_of_range(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("sac"))
    arrays["params/temperature/log_alpha"][...] = 9.0
    assert found(audit(arrays, meta), "temperature-out-of-range").value == 9.0


def test_a_broken_replay(trained: Callable[[str], Run]) -> None:
    arrays, meta, _ = parts_of(trained("dqn"))
    arrays["replay/reward"][7] = np.nan
    assert found(audit(arrays, meta), "non-finite-replay").where == ("replay/reward",)


def test_other_programs_name_their_tensors_otherwise() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        f"{net}.{index}.{leaf}": rng.standard_normal(shape if leaf == "weight" else shape[:1]).astype(np.float32)
        for net in ("critic.qf0", "critic_target.qf0")
        for index, shape in ((0, (32, 4)), (2, (16, 32)), (4, (1, 16)))  # outputs before inputs
        for leaf in ("weight", "bias")
    }
    assert worrying(audit(arrays, {})) == []
    arrays["critic.qf0.2.weight"][:, :10] = 0  # what reads ten units of the first layer
    finding = found(audit(arrays, {}), "dead-units")
    assert (finding.where, finding.value) == (("critic.qf0.0",), 10 / 32)
    for name in [name for name in arrays if "target" in name]:
        arrays[name] = arrays[name.replace("_target", "")]
    assert found(audit(arrays, {}), "target-equals-online").where == ("critic_target.qf0",)


def test_torch_moments_belong_to_the_parameters_in_order() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "actor.0.weight": rng.standard_normal((16, 4)),
        "actor.0.bias": rng.standard_normal(16),
        "actor.2.weight": rng.standard_normal((2, 16)),
        "actor.2.bias": rng.standard_normal(2),
    }
    moments = {f"optimizer.state.{i}.exp_avg_sq": np.ones_like(array) for i, array in enumerate(arrays.values())}
    steps = {f"optimizer.state.{i}.step": np.array(500.0) for i in range(4)}
    moments["optimizer.state.0.exp_avg_sq"][3:] = 0
    moments["optimizer.state.1.exp_avg_sq"][3:] = 0
    finding = found(audit(arrays | moments | steps, {}), "dead-units")
    assert (finding.where, finding.value) == (("actor.0",), 13 / 16)


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"x": np.zeros(0)},
        {"params/a/weight": np.zeros((0, 3))},
        {"params/trunk/dense/0/weight": np.ones((3, 1)), "params/trunk/dense/1/weight": np.ones((2, 2))},
        {"weight": np.ones((2, 2, 2, 2)), "a.b": np.array(1 + 2j), "s": np.array(["text"]), "u": np.ones(3, np.uint8)},
        {"obs_statistics/var": np.ones(3), "obs_statistics/mean": np.zeros(3)},
        {"optimizer/count": np.array(3), "optimizer/nu": np.ones(5), "params/w/weight": np.ones((2, 2))},
    ],
)
def test_anything_can_be_looked_at(arrays: Arrays) -> None:
    odd = {"target_update_interval": "x", "policy_delay": [], "clip_obs": None, "activation": "relu", "tau": "y"}
    for meta in ({}, {"progress": None, "config": None}, {"progress": {"updates": "many"}, "config": odd}):
        audit(arrays, meta, earlier=arrays).to_dict()
