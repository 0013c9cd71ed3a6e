"""One update at a time against NumPy: what targets are, what the gradients follow, how target networks move."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import OffPolicyConfig
from gymnasium_solver.envs.engine import Step
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.train.collect import Collector
from gymnasium_solver.train.replay_learner import ReplayLearner

BATCH, OBS, DIM, N_ACTIONS = 12, 4, 2, 3
RATE, TAU = 0.05, 0.1
DISCRETE = ActionSpec("discrete", (N_ACTIONS,), 1)
BOX = ActionSpec("box", (), DIM, -np.ones(DIM, np.float32), np.ones(DIM, np.float32))
ACTIONS = {"discrete": DISCRETE, "box": BOX}
LEARNED = {"ent_coef_init": 0.5, "ent_coef_lr": 0.1}  # SAC's temperature, with a rate of its own


def spec_of(action: ActionSpec, *, mask: bool = False, obs_sizes: tuple[int, ...] = ()) -> EnvSpec:
    size = sum(obs_sizes) or OBS
    return EnvSpec(
        "Fake-v0", (size,), np.dtype(np.float32), False, action, 100, None, mask, "fake", "test", obs_sizes=obs_sizes
    )


class Case(NamedTuple):
    config: Any
    algorithm: Algorithm
    compiled: Callable[..., Any]
    state: dict[str, Any]
    batch: dict[str, np.ndarray]
    hp: dict[str, np.float32]
    chance: Any

    def update(self, **changed: Any) -> tuple[dict[str, Any], dict[str, float], np.ndarray]:
        """After one update: state, metrics, absolute errors [G, B]."""
        arguments = {"state": self.state, "batch": self.batch, "hp": self.hp, "chance": self.chance} | changed
        state, metrics, error = self.compiled(*arguments.values())
        return jax.tree.map(np.asarray, state), metrics.to_dict(), np.asarray(error)


# A function that runs a few times is not worth optimising.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@cache
def make_compiled(algorithm: str, kind: str, mask: bool, fields: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    base = {
        "env_id": "Fake-v0",
        "algo_id": algorithm,
        "hidden_dims": [6, 5],
        "activation": "tanh",
        "optimizer": "sgd",
        "max_grad_norm": None,
        "policy_lr": RATE,
        "batch_size": BATCH,
        "gamma": 0.9,
        "tau": TAU,
    }
    config = build_config(base | dict(fields), "test")
    made = make_algorithm(config, spec_of(ACTIONS[kind], mask=mask))
    return config, made, jax.jit(made.update, compiler_options=QUICKLY)


def make_case(algorithm: str, kind: str, *, mask: bool = False, **fields: Any) -> Case:
    """Plain gradient descent on smooth networks, whose online and target parameters have nothing in common."""
    config, made, compiled = make_compiled(algorithm, kind, mask, tuple(fields.items()))
    rng = np.random.default_rng(0)
    state = made.init(rng)
    for name in ("params", "target"):
        state[name] = jax.tree.map(
            lambda x: np.asarray(x + 0.4 * rng.standard_normal(x.shape), np.float32), state[name]
        )
    rows = (config.updates, BATCH)
    batch = {
        "obs": rng.standard_normal((*rows, OBS), dtype=np.float32),
        "next_obs": rng.standard_normal((*rows, OBS), dtype=np.float32),
        "reward": rng.standard_normal(rows, dtype=np.float32),
        "discount": rng.choice([0.0, 0.9, 0.81], rows).astype(np.float32),  # ends, one step, two steps
        "weight": rng.uniform(0.2, 1.0, rows).astype(np.float32),
        "action": (
            rng.uniform(-1, 1, (*rows, DIM)).astype(np.float32)
            if kind == "box"
            else rng.integers(0, N_ACTIONS, rows).astype(np.uint8)
        ),
    }
    if mask:
        for name in ("action_mask", "next_action_mask"):
            batch[name] = rng.random((*rows, N_ACTIONS)) < 0.5
            batch[name][..., 1] = True
    hp = {name: np.float32(value_at(getattr(config, name), 0, 1)) for name in made.scheduled}
    chance = made.draw_shuffle(rng)
    return Case(config, made, compiled, state, batch, hp | {"sync_target": np.float32(0)}, chance)


def first(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first minibatch, in double precision."""
    return {name: rows[0].astype(np.float64) if rows.dtype == np.float32 else rows[0] for name, rows in batch.items()}


def features(trunk: Any, x: np.ndarray) -> np.ndarray:
    for layer in trunk["dense"]:
        x = np.tanh(x @ layer["weight"].astype(np.float64) + layer["bias"])
    return x


def apply(params: Any, head: str, x: np.ndarray) -> np.ndarray:
    return features(params["trunk"], x) @ params[head]["weight"].astype(np.float64) + params[head]["bias"]


def critics(params: Any, obs: np.ndarray, action: np.ndarray | None = None) -> np.ndarray:
    """[n_critics, B], or [n_critics, B, A] of discrete actions."""
    x = obs if action is None else np.hstack([obs, action])
    members = zip(params["trunk"], params["critic_head"], strict=True)
    q = np.stack([apply({"trunk": trunk, "critic_head": head}, "critic_head", x) for trunk, head in members])
    return q if action is None else q[..., 0]


def chosen(q: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.take_along_axis(q, np.broadcast_to(action, q.shape[:-1])[..., None].astype(int), -1)[..., 0]


def slope(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Central differences."""
    steps = 1e-5 * np.eye(at.size)
    made = [(function(at + step.reshape(at.shape)) - function(at - step.reshape(at.shape))) / 2e-5 for step in steps]
    return np.array(made).reshape(at.shape)


def require_report(metrics: dict[str, float], error: np.ndarray, target: np.ndarray, errors: np.ndarray) -> None:
    """`errors` are signed, [n_critics, B]."""
    np.testing.assert_allclose(error[0], np.abs(errors).mean(axis=0), rtol=1e-4, atol=1e-5)
    assert metrics["train/metrics/td_error"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert metrics["train/data/return_mean"] == pytest.approx(target.mean(), rel=1e-4, abs=1e-5)
    assert metrics["train/data/return_std"] == pytest.approx(target.std(), rel=1e-4)


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def require_equal(one: Any, other: Any, **tolerance: float) -> None:
    for a, b in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0, "atol": 0} | tolerance))


def changed(one: Any, other: Any) -> bool:
    return any((a != b).any() for a, b in zip(leaves(one), leaves(other), strict=True))


def dqn_values(params: Any, obs: np.ndarray) -> np.ndarray:
    return apply(params, "critic_head", obs)


def dqn_target(case: Case, row: dict[str, np.ndarray], target: Any) -> np.ndarray:
    allowed = row.get("next_action_mask", np.ones((BATCH, N_ACTIONS), bool))
    worth = np.where(allowed, dqn_values(target, row["next_obs"]), -np.inf)
    if case.config.double:
        preferred = np.where(allowed, dqn_values(case.state["params"], row["next_obs"]), -np.inf)
        return row["reward"] + row["discount"] * chosen(worth, preferred.argmax(axis=1))
    return row["reward"] + row["discount"] * worth.max(axis=1)


DQN_CASES = [  # double, target_update_interval, mask
    (True, None, False),
    (False, 100, False),
    (True, 100, True),
    (False, None, True),
]


@pytest.mark.parametrize(("double", "interval", "mask"), DQN_CASES)
def test_dqn(double: bool, interval: int | None, mask: bool) -> None:
    case = make_case("dqn", "discrete", mask=mask, double=double, target_update_interval=interval)
    row = first(case.batch)
    target = dqn_target(case, row, case.state["target"])
    errors = chosen(dqn_values(case.state["params"], row["obs"]), row["action"]) - target
    after, metrics, error = case.update()
    require_report(metrics, error, target, errors[None])
    size = np.abs(errors)
    assert (size > 1).any() and (size < 1).any(), "both sides of the loss are met"
    loss = np.mean(row["weight"] * np.where(size < 1, size**2 / 2, size - 0.5))
    assert metrics["train/loss/value"] == pytest.approx(loss, rel=1e-4)
    assert metrics["train/metrics/q_max"] == pytest.approx(
        np.abs(dqn_values(case.state["params"], row["obs"])).max(), rel=1e-4
    )
    taken = row["action"][:, None] == np.arange(N_ACTIONS)
    gradient = np.mean(row["weight"][:, None] * np.clip(errors, -1, 1)[:, None] * taken, axis=0)
    moved = after["params"]["critic_head"]["bias"] - case.state["params"]["critic_head"]["bias"]
    np.testing.assert_allclose(moved, -RATE * gradient, rtol=1e-3, atol=1e-6)


def test_dqn_with_squared_errors() -> None:
    case = make_case("dqn", "discrete", double=True, target_update_interval=None, value_loss="mse")
    row = first(case.batch)
    target = dqn_target(case, row, case.state["target"])
    errors = chosen(dqn_values(case.state["params"], row["obs"]), row["action"]) - target
    after, metrics, _ = case.update()
    assert metrics["train/loss/value"] == pytest.approx(np.mean(row["weight"] * errors**2 / 2), rel=1e-4)
    taken = row["action"][:, None] == np.arange(N_ACTIONS)
    gradient = np.mean((row["weight"] * errors)[:, None] * taken, axis=0)
    moved = after["params"]["critic_head"]["bias"] - case.state["params"]["critic_head"]["bias"]
    np.testing.assert_allclose(moved, -RATE * gradient, rtol=1e-3, atol=1e-6)


def test_double_and_single_dqn_differ_where_the_networks_do() -> None:
    double = make_case("dqn", "discrete", double=True, target_update_interval=None)
    single = make_case("dqn", "discrete", double=False, target_update_interval=100)
    row = first(single.batch)
    higher = dqn_target(single, row, single.state["target"]) - dqn_target(double, row, double.state["target"])
    assert (higher >= 0).all(), "the largest is never less than another's choice"
    assert (higher > 0.01).any()
    assert single.update()[1]["train/data/return_mean"] > double.update()[1]["train/data/return_mean"]


@pytest.mark.parametrize(("double", "mask"), [(False, False), (True, True)])
def test_dqn_copies_its_network_into_the_target_before_it_learns(double: bool, mask: bool) -> None:
    case = make_case("dqn", "discrete", mask=mask, double=double, target_update_interval=100)
    after, _, _ = case.update()
    require_equal(after["target"], case.state["target"])
    after, metrics, _ = case.update(hp=case.hp | {"sync_target": np.float32(1)})
    require_equal(after["target"], case.state["params"])
    assert changed(after["params"], case.state["params"])
    aim = dqn_target(case, first(case.batch), case.state["params"])
    assert metrics["train/data/return_mean"] == pytest.approx(aim.mean(), rel=1e-4)


def test_a_target_without_an_interval_ignores_the_call_to_copy() -> None:
    case = make_case("dqn", "discrete", double=True, target_update_interval=None)
    plain, told = case.update()[0], case.update(hp=case.hp | {"sync_target": np.float32(1)})[0]
    require_equal(plain, told)


EVERY_KIND: list[tuple[str, str, dict[str, Any]]] = [
    ("dqn", "discrete", {"double": True, "target_update_interval": None}),
    ("sac", "discrete", {"mask": True, **LEARNED}),
    ("sac", "box", LEARNED),
    ("td3", "box", {}),
    ("ddpg", "box", {}),
]
every_kind = pytest.mark.parametrize(("algorithm", "kind", "extra"), EVERY_KIND, ids=lambda x: x if x else "")


def critic_of(state: dict[str, Any]) -> Any:
    return state["params"].get("critic", state["params"])


@every_kind
def test_the_target_moves_by_the_polyak_factor(algorithm: str, kind: str, extra: dict[str, Any]) -> None:
    case = make_case(algorithm, kind, **extra)
    after, _, _ = case.update()
    online = after["params"]["critic"] if algorithm == "sac" else after["params"]
    expected = jax.tree.map(lambda old, new: (1 - TAU) * old + TAU * new, case.state["target"], online)
    require_equal(after["target"], expected, rtol=1e-5, atol=1e-6)
    assert changed(critic_of(after), critic_of(case.state))


def td3_target(state: Any, row: dict[str, np.ndarray], noise: np.ndarray) -> np.ndarray:
    action = np.tanh(apply(state["target"]["actor"], "actor_head", row["next_obs"]))
    action = np.clip(action + noise, -1, 1)
    return row["reward"] + row["discount"] * critics(state["target"]["critic"], row["next_obs"], action).min(axis=0)


@pytest.mark.parametrize(("algorithm", "n_critics"), [("ddpg", 1), ("td3", 2)])
def test_ddpg_and_td3(algorithm: str, n_critics: int) -> None:
    case = make_case(algorithm, "box")
    case.state["target"]["actor"]["actor_head"]["bias"][:] = [1.5, 0.0]  # so that noise would lead out of bounds
    row, noise = first(case.batch), case.chance[0].astype(np.float64)
    assert noise.shape == (BATCH, DIM)
    assert noise.any() == (algorithm == "td3"), "ddpg does not smooth"
    target = td3_target(case.state, row, noise)
    q = critics(case.state["params"]["critic"], row["obs"], row["action"])
    assert q.shape == (n_critics, BATCH)
    after, metrics, error = case.update()
    require_report(metrics, error, target, q - target)
    loss = np.mean(np.sum(row["weight"] * (q - target) ** 2, axis=0))
    assert metrics["train/loss/value"] == pytest.approx(loss, rel=1e-4)
    for i, head in enumerate(after["params"]["critic"]["critic_head"]):
        moved = head["bias"] - case.state["params"]["critic"]["critic_head"][i]["bias"]
        np.testing.assert_allclose(moved, -RATE * np.mean(2 * row["weight"] * (q - target)[i]), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("algorithm", ["ddpg", "td3"])
def test_a_deterministic_policy_climbs_its_first_critic(algorithm: str) -> None:
    case = make_case(algorithm, "box")
    after, metrics, _ = case.update()
    row, actor = first(case.batch), case.state["params"]["actor"]
    hidden = features(actor["trunk"], row["obs"])

    def loss(bias: np.ndarray) -> float:
        action = np.tanh(hidden @ actor["actor_head"]["weight"].astype(np.float64) + bias)
        return -float(critics(after["params"]["critic"], row["obs"], action)[0].mean())

    before = actor["actor_head"]["bias"].astype(np.float64)
    assert metrics["train/loss/policy"] == pytest.approx(loss(before), rel=1e-4, abs=1e-6)
    moved = after["params"]["actor"]["actor_head"]["bias"] - before
    np.testing.assert_allclose(moved, -RATE * slope(loss, before), rtol=2e-3, atol=1e-6)


def test_the_noise_of_target_actions_is_clipped() -> None:
    fields = {"target_noise": 0.4, "target_noise_clip": 0.5, "batch_size": 256, "update_to_data": 50}
    config = build_config({"env_id": "Fake-v0", "algo_id": "td3", **fields}, "test")
    made = make_algorithm(config, spec_of(BOX))
    noise = made.draw_shuffle(np.random.default_rng(0))
    assert noise.shape == (50, 256, DIM)
    assert np.abs(noise).max() == np.float32(0.5)
    beyond = math.erfc(0.5 / 0.4 / math.sqrt(2))
    assert np.mean(np.abs(noise) == np.float32(0.5)) == pytest.approx(beyond, rel=0.05)
    assert noise[np.abs(noise) < 0.5].std() < 0.4
    assert (made.draw_shuffle(np.random.default_rng(1)) != noise).any()


def test_the_policy_and_the_targets_wait_for_the_critics() -> None:
    case = make_case("td3", "box")
    assert case.config.policy_delay == 2
    state, moves = case.state, []
    for _ in range(4):
        after, _, _ = case.update(state=state)
        assert changed(after["params"]["critic"], state["params"]["critic"])
        moved = changed(after["params"]["actor"], state["params"]["actor"])
        assert changed(after["target"], state["target"]) == moved
        moves.append(moved)
        state = after
    assert moves in ([True, False, True, False], [False, True, False, True]), "also from one update to the next"
    assert state["steps"] == 4


def test_ddpg_moves_its_policy_every_time() -> None:
    case = make_case("ddpg", "box")
    state = case.state
    for _ in range(3):
        after, _, _ = case.update(state=state)
        assert changed(after["params"]["actor"], state["params"]["actor"])
        state = after


def gaussian_policy(actor: Any, obs: np.ndarray, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Action and its log-probability."""
    mean, log_std = np.split(apply(actor, "actor_head", obs), 2, axis=1)
    log_std = np.clip(log_std, -20, 2)  # all that is computed with
    before = mean + np.exp(log_std) * normal
    slope_of_tanh = 2 * (math.log(2) - np.logaddexp(before, -before))  # log of 1 / cosh²
    log_prob = -0.5 * normal**2 - 0.5 * math.log(2 * math.pi) - log_std - slope_of_tanh
    return np.tanh(before), log_prob.sum(axis=1)


def set_temperature(state: dict[str, Any], alpha: float) -> None:
    state["params"]["temperature"]["log_alpha"] = np.array(math.log(alpha), np.float32)


def test_sac_with_continuous_actions() -> None:
    case = make_case("sac", "box", **LEARNED)
    set_temperature(case.state, 0.3)
    assert case.chance.shape == (1, 2, BATCH, DIM)
    row, normal = first(case.batch), case.chance[0].astype(np.float64)
    params = case.state["params"]
    action, log_prob = gaussian_policy(params["actor"], row["next_obs"], normal[1])
    worth = critics(case.state["target"], row["next_obs"], action).min(axis=0) - 0.3 * log_prob
    target = row["reward"] + row["discount"] * worth
    q = critics(params["critic"], row["obs"], row["action"])
    after, metrics, error = case.update()
    require_report(metrics, error, target, q - target)
    loss = 0.5 * np.mean(np.sum(row["weight"] * (q - target) ** 2, axis=0))
    assert metrics["train/loss/value"] == pytest.approx(loss, rel=1e-4)
    assert metrics["train/metrics/alpha"] == pytest.approx(0.3, rel=1e-5)
    for i, head in enumerate(after["params"]["critic"]["critic_head"]):
        moved = head["bias"] - params["critic"]["critic_head"][i]["bias"]
        np.testing.assert_allclose(moved, -RATE * np.mean(row["weight"] * (q - target)[i]), rtol=1e-3, atol=1e-6)

    head = params["actor"]["actor_head"]

    def actor_loss(bias: np.ndarray) -> float:
        actor = {"trunk": params["actor"]["trunk"], "actor_head": {"weight": head["weight"], "bias": bias}}
        action, log_prob = gaussian_policy(actor, row["obs"], normal[0])
        return float(np.mean(0.3 * log_prob - critics(after["params"]["critic"], row["obs"], action).min(axis=0)))

    before = head["bias"].astype(np.float64)
    entropy = -gaussian_policy(params["actor"], row["obs"], normal[0])[1].mean()
    assert metrics["train/metrics/entropy"] == pytest.approx(entropy, rel=1e-4)
    assert metrics["train/loss/policy"] == pytest.approx(actor_loss(before), rel=1e-3, abs=1e-5)
    moved = after["params"]["actor"]["actor_head"]["bias"] - before
    np.testing.assert_allclose(moved, -RATE * slope(actor_loss, before), rtol=2e-3, atol=1e-5)


def test_sac_with_discrete_actions_takes_the_expectation() -> None:
    case = make_case("sac", "discrete", mask=True, **LEARNED)
    set_temperature(case.state, 0.3)
    row, params = first(case.batch), case.state["params"]

    def policy(obs: np.ndarray, allowed: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
        logits = np.where(allowed, apply(params["actor"], "actor_head", obs) + shift, -np.inf)
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def soft_value(q: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.sum(p * (q.min(axis=0) - 0.3 * np.log(np.maximum(p, 1e-300))), axis=1)

    p = policy(row["next_obs"], row["next_action_mask"])
    target = row["reward"] + row["discount"] * soft_value(critics(case.state["target"], row["next_obs"]), p)
    q = chosen(critics(params["critic"], row["obs"]), row["action"])
    after, metrics, error = case.update()
    require_report(metrics, error, target, q - target)

    allowed = row["action_mask"]
    p = policy(row["obs"], allowed)
    entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1).mean()
    assert metrics["train/metrics/entropy"] == pytest.approx(entropy, rel=1e-4)
    q_after = critics(after["params"]["critic"], row["obs"])
    moved = after["params"]["actor"]["actor_head"]["bias"] - params["actor"]["actor_head"]["bias"]
    gradient = slope(lambda b: -float(soft_value(q_after, policy(row["obs"], allowed, b)).mean()), np.zeros(N_ACTIONS))
    np.testing.assert_allclose(moved, -RATE * gradient, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "mask", "little", "much", "target"),
    [
        ("box", False, [0, 0, -6, -6], [0, 0, -0.5, -0.5], -DIM),
        ("discrete", True, [0, 60, 0], [0, 0, 0], math.log(N_ACTIONS) / 3),
    ],
)
def test_the_temperature_rises_when_there_is_too_little_entropy(
    kind: str, mask: bool, little: list[float], much: list[float], target: float
) -> None:
    case = make_case("sac", kind, mask=mask, **LEARNED)
    if mask:
        case.batch["action_mask"][:] = True
    set_temperature(case.state, 0.4)
    head = case.state["params"]["actor"]["actor_head"]
    head["weight"][:] = 0.0
    for bias, move in ((little, 0.1), (much, -0.1)):
        head["bias"][:] = bias
        after, metrics, _ = case.update()
        assert (metrics["train/metrics/entropy"] < target) == (bias == little)
        moved = after["params"]["temperature"]["log_alpha"] - math.log(0.4)
        assert moved == pytest.approx(move, rel=1e-3), "Adam's first step is its rate"
        gradient = after["optimizer"]["temperature"]["mean"] / 0.1  # its first mean is a tenth of the gradient
        assert metrics["train/metrics/entropy"] - gradient == pytest.approx(target, rel=1e-3)
        assert metrics["train/metrics/alpha"] == pytest.approx(0.4, rel=1e-5), "the one that was in force"


def test_the_temperature_starts_where_it_is_told_and_follows_adam() -> None:
    """Networks stand still, so the entropies of three gradient steps are known from their noise."""
    case = make_case("sac", "box", **LEARNED, update_to_data=3)
    fresh = case.algorithm.init(np.random.default_rng(0))["params"]["temperature"]["log_alpha"]
    assert fresh == pytest.approx(math.log(0.5))
    case.state["params"]["temperature"]["log_alpha"] = fresh
    obs, normal = case.batch["obs"].astype(np.float64), case.chance.astype(np.float64)
    mean = square = 0.0
    expected = math.log(0.5)
    for step in range(3):
        entropy = -gaussian_policy(case.state["params"]["actor"], obs[step], normal[step, 0])[1].mean()
        gradient = entropy + DIM
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        corrected = mean / (1 - 0.9 ** (step + 1)), square / (1 - 0.999 ** (step + 1))
        expected -= 0.1 * corrected[0] / (math.sqrt(corrected[1]) + 1e-8)
    after, _, _ = case.update(hp=case.hp | {"policy_lr": np.float32(0)})
    assert after["params"]["temperature"]["log_alpha"] == pytest.approx(expected, rel=1e-3)
    assert not changed(after["params"]["actor"], case.state["params"]["actor"])


@every_kind
def test_importance_weights_scale_the_gradient(algorithm: str, kind: str, extra: dict[str, Any]) -> None:
    """A step of gradient descent is a sum over transitions, each as large as its weight."""
    case = make_case(algorithm, kind, **extra)

    def moved(weight: np.ndarray) -> np.ndarray:
        after, _, _ = case.update(batch=case.batch | {"weight": weight.astype(np.float32)[None]})
        pairs = zip(leaves(critic_of(case.state)), leaves(critic_of(after)), strict=True)
        return np.concatenate([(new - old).ravel() for old, new in pairs])

    weight = case.batch["weight"][0].astype(np.float64)
    parts = [moved(row) for row in np.eye(BATCH)]
    assert all(np.abs(part).max() > 1e-6 for part in parts)
    np.testing.assert_allclose(moved(weight), weight @ np.array(parts), rtol=1e-3, atol=2e-6)
    assert not moved(np.zeros(BATCH)).any()


@pytest.mark.parametrize(
    ("algorithm", "kind", "extra"),
    [
        ("dqn", "discrete", {"double": True, "target_update_interval": None}),
        ("dqn", "discrete", {"double": False, "target_update_interval": 100}),
        ("td3", "box", {}),
        ("sac", "box", LEARNED),
    ],
    ids=["dqn", "dqn that copies", "td3", "sac"],
)
def test_several_gradient_steps_in_one_update_are_as_many_updates(
    algorithm: str, kind: str, extra: dict[str, Any]
) -> None:
    at_once, one = make_case(algorithm, kind, **extra, update_to_data=3), make_case(algorithm, kind, **extra)
    state, errors = at_once.state, []
    for i in range(3):
        rows = {name: array[i : i + 1] for name, array in at_once.batch.items()}
        chance = at_once.chance[i : i + 1] if kind == "box" else ()
        state, _, error = one.update(state=state, batch=rows, chance=chance)
        errors.append(error)
    after, _, error = at_once.update()
    require_equal(after, state, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(error, np.concatenate(errors), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "kind", "extra"), [("dqn", "discrete", {}), ("td3", "box", {}), ("sac", "box", {"ent_coef": 0.2})]
)
def test_rates_and_clipping(algorithm: str, kind: str, extra: dict[str, Any]) -> None:
    case = make_case(algorithm, kind, value_lr=0.5, max_grad_norm=0.01, **extra)
    after, metrics, _ = case.update()
    pairs = zip(leaves(critic_of(case.state)), leaves(critic_of(after)), strict=True)
    length = math.sqrt(sum(float(np.sum(np.square(new - old, dtype=np.float64))) for old, new in pairs))
    assert length == pytest.approx(0.5 * 0.01, rel=1e-2), "the critic's rate times what the gradient was clipped to"
    assert metrics["train/metrics/grad_clip_fraction"] == 1.0
    after, metrics, _ = case.update(hp=case.hp | {"value_lr": np.float32(0)})
    assert not changed(critic_of(after), critic_of(case.state))
    if algorithm != "dqn":
        assert changed(after["params"]["actor"], case.state["params"]["actor"])
    if algorithm == "sac":
        assert "temperature" not in after["params"]
        assert metrics["train/metrics/alpha"] == pytest.approx(0.2), "fixed, or as scheduled"


def test_observations_and_rewards_are_normalised_when_they_are_used() -> None:
    same = {"double": True, "target_update_interval": None}
    case = make_case("dqn", "discrete", **same, normalize_obs=True, normalize_reward=True, clip_reward=0.4)
    plain = make_case("dqn", "discrete", **same)
    mean, var = np.linspace(-1, 1, OBS), np.linspace(0.5, 2, OBS)
    case.state["obs_statistics"] = {
        "mean": mean.astype(np.float32),
        "var": var.astype(np.float32),
        "count": np.float32(9),
    }
    case.state["return_statistics"] = {"mean": np.float32(7), "var": np.float32(4), "count": np.float32(9)}
    by_hand = plain.batch | {
        "obs": ((plain.batch["obs"] - mean) / np.sqrt(var)).astype(np.float32),
        "next_obs": ((plain.batch["next_obs"] - mean) / np.sqrt(var)).astype(np.float32),
        "reward": np.clip(plain.batch["reward"] / 2, -0.4, 0.4),
    }
    ours, expected = case.update(), plain.update(batch=by_hand)
    np.testing.assert_allclose(ours[2], expected[2], rtol=1e-4, atol=1e-5)
    require_equal(ours[0]["params"], expected[0]["params"], rtol=1e-4, atol=1e-6)


class Clockwork:
    """Two environments whose episodes end at every fourth and every sixth step."""

    n_envs = 2

    def __init__(self) -> None:
        self.spec = spec_of(DISCRETE)

    def reset(self, seed: int) -> tuple[np.ndarray, None]:
        self._taken = np.zeros(2, int)
        self._done = np.zeros(2, bool)
        return self._obs(), None

    def step(self, action: np.ndarray) -> Step:
        self._taken = np.where(self._done, 0, self._taken + 1)
        self._done = self._taken == [4, 6]
        return Step(self._obs(), np.ones(2, np.float32), self._done.copy(), np.zeros(2, bool), None)

    def _obs(self) -> np.ndarray:
        return np.repeat(self._taken[:, None], OBS, axis=1).astype(np.float32)

    def close(self) -> None: ...


def test_the_target_is_copied_whenever_so_many_env_steps_have_passed() -> None:
    interval = 7
    config = build_config(
        {
            "env_id": "Fake-v0",
            "algo_id": "dqn",
            "n_envs": 2,
            "train_freq": 2,
            "n_steps": 60,
            "update_to_data": 0.25,
            "batch_size": 4,
            "hidden_dims": [4],
            "learning_starts": 20,
            "target_update_interval": interval,
        },
        "test",
    )
    assert isinstance(config, OffPolicyConfig)
    engine = Clockwork()
    algorithm = make_algorithm(config, engine.spec)
    state = algorithm.init(np.random.default_rng(0))
    state["target"] = jax.tree.map(lambda x: x + 1, state["target"])  # no copy of anything, to begin with
    learner = ReplayLearner(config, engine.spec, algorithm, state)
    collector = Collector(engine, config.n_steps, algorithm.act, 0)
    compiled = jax.jit(algorithm.update, compiler_options=QUICKLY)
    copies: list[tuple[int, bool]] = []

    def update(state: Any, batch: Any, hp: Any, chance: Any) -> Any:
        after = compiled(state, batch, hp, chance)
        copies.append((learner.replay.count, not changed(after[0]["target"], state["params"])))
        return after

    future: Future[Any] = Future()
    future.set_result(update)
    hp = {"policy_lr": 0.1, "epsilon": 0.5, "priority_beta": 0.4}
    epoch = learner.epoch(collector, future, np.random.default_rng(0), hp, 0)
    steps = np.concatenate([[0], np.cumsum(epoch.batch["valid"].sum(axis=1))])  # after so many rows
    assert steps[-1] < 2 * 60, "rows that reset are no steps"
    assert steps[copies[0][0]] >= config.learning_starts > steps[copies[0][0] - 4]
    assert [row for row, _ in copies] == list(range(copies[0][0], 61, 2))
    for row, copied in copies:
        assert copied == (steps[row] // interval > steps[row - 2] // interval), f"after {steps[row]} env steps"
    assert any(copied for _, copied in copies)
    assert epoch.gradient_steps == len(copies)


ONE_HOT = np.eye(3, dtype=np.float32)
# Observation, action, reward, how it ended, whether it was a step: γ = ½, step size ½.
ROLLOUT = [
    (0, 0, 1.0, "", True),
    (1, 0, 2.0, "truncated", True),
    (2, 1, 99.0, "", False),  # resets; 2 was the final observation
    (0, 1, 4.0, "terminated", True),
    (2, 0, 99.0, "", False),
    (1, 1, 0.0, "", True),  # leads to 0, where the rollout ends
]
TABLE = np.array([[1, 2], [3, 5], [7, 6]], np.float32)


def tabular(algorithm: str, **fields: Any) -> tuple[Algorithm, dict[str, Any], dict[str, np.ndarray], dict[str, Any]]:
    config = build_config(
        {"env_id": "Fake-v0", "algo_id": algorithm, "gamma": 0.5, "n_steps": len(ROLLOUT), **fields}, "test"
    )
    made = make_algorithm(config, spec_of(ActionSpec("discrete", (2,), 1), obs_sizes=(3,)))
    state = made.init(np.random.default_rng(0)) | {"params": {"table": TABLE.copy()}}
    obs, action, reward, end, valid = zip(*ROLLOUT, strict=True)
    batch = {
        "obs": ONE_HOT[[*obs, 0]][:, None],
        "action": np.array(action, np.int32)[:, None],
        "reward": np.array(reward, np.float32)[:, None],
        "terminated": np.array([e == "terminated" for e in end])[:, None],
        "truncated": np.array([e == "truncated" for e in end])[:, None],
        "valid": np.array(valid)[:, None],
    }
    hp = {"policy_lr": np.float32(0.5), "epsilon": np.float32(0.2), "ucb_coef": np.float32(1.0)}
    return made, state, batch, hp


def test_q_learning_by_hand() -> None:
    made, state, batch, hp = tabular("q_learning")
    after, metrics, worth = jax.jit(made.update)(state, batch, hp, made.draw_shuffle(np.random.default_rng(0)))
    targets = [1 + 0.5 * 5, 2 + 0.5 * 7, None, 4.0, None, 0 + 0.5 * 3]  # the last knows that (0, 1) became 3
    table = [[1 + 0.5 * 2.5, 2 + 0.5 * 2], [3 + 0.5 * 2.5, 5 - 0.5 * 3.5], [7, 6]]
    np.testing.assert_allclose(after["params"]["table"], table, rtol=1e-6)
    steps = [t for t, target in enumerate(targets) if target is not None]
    np.testing.assert_allclose(worth.target[steps, 0], [targets[t] for t in steps], rtol=1e-6)
    np.testing.assert_allclose(worth.value[steps, 0], [1, 3, 2, 5])
    np.testing.assert_allclose(worth.advantage[steps, 0], [2.5, 2.5, 2.0, -3.5], rtol=1e-6)
    assert metrics["train/metrics/td_error"] == pytest.approx((2.5 + 2.5 + 2 + 3.5) / 4)
    assert metrics["train/loss/value"] == pytest.approx((2.5**2 + 2.5**2 + 2**2 + 3.5**2) / 4)
    assert after["visits"].tolist() == [[1, 1], [1, 1], [0, 0]]
    assert metrics["train/metrics/visited_share"] == pytest.approx(4 / 6)


def test_sarsa_by_hand() -> None:
    made, state, batch, hp = tabular("sarsa")
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.draw_shuffle(np.random.default_rng(0)))
    first = 1 + 0.5 * (1 + 0.5 * 3 - 1)  # action 0 is taken next, worth 3
    cut = 3 + 0.5 * (2 + 0.5 * (0.2 * 6.5 + 0.8 * 7) - 3)  # no next action: what a fifth at random comes to
    ended = 2 + 0.5 * (4 - 2)
    last = 5 + 0.5 * (0.5 * (0.2 * (first + ended) / 2 + 0.8 * ended) - 5)
    np.testing.assert_allclose(after["params"]["table"], [[first, ended], [cut, last], [7, 6]], rtol=1e-6)


def test_sarsa_with_ucb_expects_the_best() -> None:
    made, state, batch, hp = tabular("sarsa", exploration="ucb")
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.draw_shuffle(np.random.default_rng(0)))
    assert after["params"]["table"][1, 0] == pytest.approx(3 + 0.5 * (2 + 0.5 * 7 - 3))


@pytest.mark.parametrize(("algorithm", "worth"), [("q_learning", 3.0), ("sarsa", 0.2 * 3.0 + 0.8 * 3.0)])
def test_forbidden_actions_are_worth_nothing_to_a_table(algorithm: str, worth: float) -> None:
    """Action 1 is forbidden in observation 1, though the table holds 5 for it."""
    made, state, batch, hp = tabular(algorithm)
    batch = {name: rows[: 3 if name == "obs" else 2] for name, rows in batch.items()}
    batch["valid"] = np.array([[True], [False]])  # no next action is known
    batch["action_mask"] = np.array([[[True, True]], [[True, False]]])
    batch["final_action_mask"] = np.array([[True, True]])
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.draw_shuffle(np.random.default_rng(0)))
    assert after["params"]["table"][0, 0] == pytest.approx(1 + 0.5 * (1 + 0.5 * worth - 1))


@pytest.mark.parametrize(("algorithm", "worth"), [("q_learning", 3.0), ("sarsa", 0.2 * 3.0 + 0.8 * 3.0)])
def test_nor_are_they_where_the_rollout_ends(algorithm: str, worth: float) -> None:
    made, state, batch, hp = tabular(algorithm)
    batch = {name: rows[: 2 if name == "obs" else 1] for name, rows in batch.items()}
    batch["action_mask"], batch["final_action_mask"] = np.array([[[True, True]]]), np.array([[True, False]])
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.draw_shuffle(np.random.default_rng(0)))
    assert after["params"]["table"][0, 0] == pytest.approx(1 + 0.5 * (1 + 0.5 * worth - 1))


def test_environments_side_by_side_teach_one_after_the_other() -> None:
    made, state, batch, hp = tabular("q_learning")
    double = {name: np.repeat(rows[: 2 if name == "obs" else 1], 2, axis=1) for name, rows in batch.items()}
    after, _, _ = jax.jit(made.update)(state, double, hp, made.draw_shuffle(np.random.default_rng(0)))
    once = 1 + 0.5 * (3.5 - 1)
    assert after["params"]["table"][0, 0] == pytest.approx(once + 0.5 * (3.5 - once))
    assert after["visits"][0, 0] == 2


def test_a_table_of_two_components_and_how_it_acts() -> None:
    config = build_config(
        {"env_id": "Fake-v0", "algo_id": "q_learning", "initial_value": 5, "exploration": "ucb"}, "test"
    )
    made = make_algorithm(config, spec_of(ActionSpec("discrete", (2,), 1), obs_sizes=(2, 3)))
    state = made.init(np.random.default_rng(0))
    assert (state["params"]["table"] == np.full((6, 2), 5.0)).all()
    state["params"]["table"][:, 0] = np.arange(6) + 10
    obs = np.array([[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 1, 0, 0, 1]], np.float32)  # (0, 2), (1, 1), (1, 2)
    assert made.value(state, obs).tolist() == [12, 14, 15]
    actor = made.actor(state)
    assert made.act_greedy(actor, obs, None).tolist() == [0, 0, 0]
    assert made.act_greedy(actor, obs, np.array([[True, True], [False, True], [True, True]])).tolist() == [0, 1, 0]
    noise = made.draw_noise(np.random.default_rng(0), (3,), {"ucb_coef": 1.0, "epsilon": 1.0})
    state["visits"][:] = 1.0
    state["visits"][2, 1] = 0.0
    assert made.act(made.actor(state), obs, noise, None).tolist() == [1, 0, 0], "what was never tried comes first"


def refusal(algorithm: str, spec: EnvSpec, **fields: Any) -> str:
    config = build_config({"env_id": "Fake-v0", "algo_id": algorithm, **fields}, "test")
    with pytest.raises(ConfigError) as caught:
        make_algorithm(config, spec)
    return str(caught.value)


MULTI_DISCRETE = ActionSpec("multi_discrete", (2, 3), 2)
UNBOUNDED = ActionSpec("box", (), 2, np.array([-1, -np.inf], np.float32), np.array([1, np.inf], np.float32))
HALF_BOUNDED = ActionSpec("box", (), 2, np.array([-1, -1], np.float32), np.array([1, np.inf], np.float32))


@pytest.mark.parametrize(
    ("algorithm", "action", "what", "remedy"),
    [
        ("dqn", BOX, "continuous actions", "use sac, td3 or ppo"),
        ("dqn", MULTI_DISCRETE, "several discrete actions", "use ppo"),
        ("sac", MULTI_DISCRETE, "several discrete actions", "use ppo"),
        ("td3", DISCRETE, "discrete actions", "use dqn or ppo"),
        ("ddpg", DISCRETE, "discrete actions", "use dqn or ppo"),
    ],
)
def test_actions_that_an_algorithm_cannot_serve(algorithm: str, action: ActionSpec, what: str, remedy: str) -> None:
    assert refusal(algorithm, spec_of(action)) == (f"algo_id: {algorithm} cannot serve the {what} of Fake-v0; {remedy}")


@pytest.mark.parametrize("algorithm", ["ddpg", "td3", "sac"])
@pytest.mark.parametrize("action", [UNBOUNDED, HALF_BOUNDED])
def test_actions_without_bounds(algorithm: str, action: ActionSpec) -> None:
    message = refusal(algorithm, spec_of(action))
    assert message.startswith(f"algo_id: {algorithm} acts within bounds, and the actions of Fake-v0 have none; use ppo")


@pytest.mark.parametrize("algorithm", ["ddpg", "td3", "sac"])
def test_actions_that_would_stay_unscaled(algorithm: str) -> None:
    message = refusal(algorithm, spec_of(BOX), rescale_actions=False)
    assert message.startswith(f"rescale_actions: false leaves {algorithm}")
    assert message.endswith("set it to true")


@pytest.mark.parametrize("algorithm", ["q_learning", "sarsa"])
def test_what_a_table_cannot_hold(algorithm: str) -> None:
    message = refusal(algorithm, spec_of(DISCRETE))
    assert message.startswith(f"algo_id: {algorithm} keeps a table of discrete observations, and those of Fake-v0")
    assert "use dqn, or a wrapper" in message
    message = refusal(algorithm, spec_of(BOX, obs_sizes=(3,)))
    assert message.startswith(f"algo_id: {algorithm} keeps a table of discrete actions; those of Fake-v0 are not")
    message = refusal(algorithm, spec_of(DISCRETE, obs_sizes=(1000, 1000, 1000)))
    assert "3,000,000,000 entries for Fake-v0; use dqn" in message


def test_a_cnn_needs_images() -> None:
    assert refusal("dqn", spec_of(DISCRETE), network="cnn") == (
        f"network: cnn needs images, and the observations of Fake-v0 are [{OBS}]; use auto"
    )
