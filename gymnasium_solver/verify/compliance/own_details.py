"""The list of details, looked for in our PPO: measured where there is something to measure, else read from configs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_args

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.ppo import State
from gymnasium_solver.config.cards.ppo import IMAGE, PPOConfig
from gymnasium_solver.config.load import load_config, shipped
from gymnasium_solver.config.schedules import Schedule
from gymnasium_solver.envs.actions import action_codec
from gymnasium_solver.envs.wrappers import NAMED
from gymnasium_solver.ops import losses
from gymnasium_solver.ops.descent import descent_for
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import normalizer_for
from gymnasium_solver.verify.compliance.details import finding, published
from gymnasium_solver.verify.compliance.loss_terms import clipped
from gymnasium_solver.verify.compliance.own_update import (
    FEATURES,
    TOLERANCE,
    config_for,
    initial_params,
    spaces_for,
    updated,
)
from gymnasium_solver.verify.compliance.report import Finding, Presence
from gymnasium_solver.verify.compliance.samples import loss_batch

Array = np.ndarray
Row = tuple[bool | Presence, str]  # how the next detail stands (present, or different), and what shows it
DIAGNOSTICS = (
    *("train/loss/policy", "train/loss/value", "train/metrics/entropy"),
    *("train/metrics/kl_divergence", "train/metrics/clip_fraction"),
)


def own_details(wrong_surrogate: list[str], wrong_gae: list[str]) -> list[Finding]:
    """`wrong_…`: checks of our functions that fail."""
    kinds = ", ".join(get_args(PPOConfig.model_fields["network"].annotation))
    recurrent: list[Row] = [("absent", f"no recurrent network (network: {kinds})")] * 5
    rows = [*_core(wrong_surrogate, wrong_gae), *_atari(), *_continuous(), *recurrent, _same_gradient("multi_discrete")]
    words = {True: "present", False: "different"}
    numbered = zip(range(1, len(published()) + 1), rows, strict=True)
    return [finding(number, words.get(status, status), evidence) for number, (status, evidence) in numbered]  # type: ignore[call-overload]


def default(field: str) -> Any:
    return PPOConfig.model_fields[field].default


def _same_gradient(kind: str) -> Row:
    error = updated(kind).error
    return error < TOLERANCE, f"gradient of an update as in NumPy, error {error:.1e}"


def _core(wrong_surrogate: list[str], wrong_gae: list[str]) -> Iterator[Row]:
    variants = [f"{env_id}:{variant}" for env_id, variant, _ in shipped() if variant.startswith("ppo")]
    ours = [config for config in map(load_config, variants) if isinstance(config, PPOConfig)]

    def share(holds: Callable[[PPOConfig], bool]) -> str:
        return f"{sum(map(holds, ours))} of {len(ours)} shipped PPO variants"

    several = share(lambda config: config.n_envs > 1)
    yield default("n_envs") > 1, f"n_envs {default('n_envs')} by default, more than one in {several}"
    yield initial_weights()
    # Adam's first step is g / (g + epsilon): solved for epsilon, at a gradient of about its size.
    epsilon = 1e-5 * (1 / float(np.median(_one_step(1e-5))) - 1)
    yield abs(epsilon - 1e-5) < 1e-7, f"{epsilon:.1e}, measured from one step"
    scheduled = share(lambda config: isinstance(config.policy_lr, Schedule))
    yield isinstance(default("policy_lr"), Schedule), f"constant by default; a schedule in {scheduled}"
    yield not wrong_gae, f"fails: {', '.join(wrong_gae)}" if wrong_gae else "reference values reproduced"
    yield _shuffled()
    normalized = default("normalize_advantages") and updated("discrete").error < TOLERANCE
    yield normalized, "by default, mean 0 and deviation 1 (ddof 0), as the gradient of a whole update shows"
    found = f"fails: {', '.join(wrong_surrogate)}" if wrong_surrogate else "reference values and gradients reproduced"
    yield not wrong_surrogate, f"{found}; clip_range {default('clip_range')} by default"
    yield _value_clip(share(lambda config: config.clip_range_vf is not None))
    bonus = share(lambda config: config.ent_coef != 0)
    weights = f"vf_coef {default('vf_coef'):g} on the mean squared error without a factor ½, as in Stable-Baselines3"
    yield True, f"{weights}; ent_coef {default('ent_coef'):g} by default, above 0 in {bonus}"
    norm = float(np.linalg.norm(_one_step(1.0, optimizer="sgd")))
    yield abs(norm - 0.5) < 1e-3, f"a gradient of ones becomes one of norm {norm:.3f}"
    metrics = updated("discrete").metrics
    missing = "".join(f", no {name}" for name in DIAGNOSTICS if name not in metrics)
    yield not missing, f"{len(metrics)} numbers for each update{missing}"
    trunks = [set(initial_params(shared_network=shared)["trunk"]) for shared in (False, True)]
    yield trunks == [{"policy", "value"}, {"shared"}], "separate by default, one trunk with shared_network: true"


def initial_weights(**fields: Any) -> Row:
    params = initial_params(**fields)
    hidden = [layer for trunk in params["trunk"].values() for layer in trunk["dense"]]
    groups = {"hidden": hidden, "policy head": [params["actor_head"]], "value head": [params["critic_head"]]}
    right, shown = True, []
    for (name, layers), gain in zip(groups.items(), (np.sqrt(2), 0.01, 1.0), strict=True):
        singular = np.concatenate([np.linalg.svd(layer["weight"], compute_uv=False) for layer in layers])
        right &= np.allclose(singular, gain, rtol=1e-4) and not any(layer["bias"].any() for layer in layers)
        shown.append(f"{name} {singular.mean():.4g}")
    return right, f"singular values: {', '.join(shown)}; biases {'0' if right else 'or weights otherwise'}"


def _one_step(component: float, **fields: Any) -> Array:
    """What a gradient of equal components subtracts from the parameters at learning rate 1."""
    params, descent = initial_params(), descent_for(config_for(**fields))
    layout = Layout.of(params)
    before = layout.flatten(params)
    gradient = layout.unflatten(jnp.full(before.shape, component, jnp.float32))
    after, _, _ = descent.step(before, descent.initial(params), gradient, jnp.float32(1), layout)
    return np.asarray(before - after, float)


def _shuffled() -> Row:
    config = config_for(n_epochs=3)
    noise = make_algorithm(config, spaces_for("discrete")).update_noise(np.random.default_rng(0))
    epochs, rows = noise.reshape(3, config.rollout), np.arange(config.rollout)
    whole = all(np.array_equal(np.sort(epoch), rows) for epoch in epochs)
    anew = not np.array_equal(epochs[0], epochs[1]) and not np.array_equal(epochs[0], rows)
    return whole and anew, "every row once per epoch, each time in another order"


def _value_clip(used: str) -> Row:
    batch = loss_batch()
    arrays: Any = (batch.values, batch.old_values, batch.returns, batch.weight)
    got, wanted = (
        float(losses.clipped_value_error(*arrays, batch.clip_range_vf)),
        clipped("clip_range_vf", batch).mean(),
    )
    right = "as the reference" if abs(got - wanted) < 1e-5 else f"{got:.5f} for {wanted:.5f}"
    return default("clip_range_vf") is not None, f"off by default and on in {used}; with clip_range_vf set {right}"


def _atari() -> Iterator[Row]:
    offered = inspect.signature(gym.wrappers.AtariPreprocessing).parameters
    wrapper = "gymnasium.wrappers:AtariPreprocessing in env_wrappers"

    def present(*names: str) -> Presence:
        return "present" if all(name in NAMED or name in offered for name in names) else "absent"

    yield present("noop_max"), f"by {wrapper} (noop_max 30); sticky_actions is there too"
    yield present("max_and_skip"), "max_and_skip: 4 in env_wrappers"
    yield "different", f"by {wrapper} (terminal_on_life_loss), which begins a new game with each life"
    yield present("fire"), "no such wrapper; one of your own as module:Class"
    yield present("grey", "resize"), "grey and resize: 84 in env_wrappers"
    yield "different", "reward_clip in env_wrappers limits rewards to [-1, 1]: the same where they are whole numbers"
    yield present("frame_stack"), "frame_stack: 4"
    config = config_for(**IMAGE)
    algorithm = make_algorithm(config, spaces_for("discrete", (84, 84, 4)))
    state = algorithm.init(np.random.default_rng(0))
    trunks = state.params["trunk"]
    layers = [layer for trunk in trunks.values() for layer in (*trunk["convolutions"], *trunk["dense"])]
    widths = [layer["weight"].shape[-1] for layer in layers]
    usual = set(trunks) == {"shared"} and widths == [32, 64, 64, 512]
    yield usual, f"layers of {', '.join(map(str, widths))} in {', '.join(trunks)}: the default for images"
    wanted: Any = np.ones(4)
    for layer in layers:  # a white picture stays of one colour, so each layer only adds up over positions
        wanted = np.maximum(wanted @ layer["weight"].reshape(-1, len(wanted), layer["weight"].shape[-1]).sum(0), 0)
    wanted = float(wanted @ state.params["critic_head"]["weight"][:, 0])
    got = float(algorithm.value(state, jnp.full((1, 84, 84, 4), 255, jnp.uint8))[0])
    yield abs(got - wanted) < 1e-4 * (1 + abs(wanted)), f"bytes of 255 give the value of ones ({got:.4f}, {wanted:.4f})"


def _continuous() -> Iterator[Row]:
    yield _same_gradient("box")
    params = initial_params("box")
    log_std = params["actor_head"]["log_std"]
    free = log_std.shape == (2,) and not log_std.any()
    yield free, f"{log_std.size} parameters beginning at {log_std.max():g} (log_std_init)"
    yield _same_gradient("box")
    sizes = [[layer["weight"].shape[1] for layer in trunk["dense"]] for trunk in params["trunk"].values()]
    usual = sizes == [[64, 64]] * 2 and default("activation") == "tanh"
    yield usual, f"{len(sizes)} by default, {sizes[0]} {default('activation')} units each"
    drawn = np.array([[3.0]], np.float32)
    acted = action_codec(gym.spaces.Box(-2, 2, (1,)), True, "Imaginary-v0").batch(drawn)
    within = float(drawn[0, 0]) == 3 and float(acted[0, 0]) == 2
    yield within, f"3 drawn and stored, bounds ±2: {acted[0, 0]:g} acted; [-1, 1] is scaled to the bounds"
    yield from _normalizers()


def _normalizers() -> Iterator[Row]:
    config = config_for(normalize_obs=True, normalize_reward=True, n_envs=4, n_steps=64)
    normalizer = normalizer_for(config, spaces_for("discrete"))
    obs = np.random.default_rng(0).normal(5, 3, (65, 4, FEATURES)).astype(np.float32)
    flags = {name: np.full((64, 4), name == "valid") for name in ("valid", "terminated", "truncated")}
    batch: Any = {"obs": obs, "action": obs, "reward": np.full((64, 4), 2.0, np.float32), **flags}
    first, state = normalizer.rollout(State(None, None, **normalizer.initial()), batch)
    outlier = np.zeros((64, 4), np.float32)
    outlier[-1, 0] = 1e6
    second, _ = normalizer.rollout(state, {**batch, "obs": np.full_like(obs, 1e6), "reward": outlier})
    scaled = np.asarray(normalizer.obs(state, batch["obs"][:-1]))
    centred = abs(scaled.mean()) < 1e-3 and abs(scaled.std() - 1) < 0.02
    evidence = f"mean {scaled.mean():+.4f}, deviation {scaled.std():.3f} with normalize_obs; off by default"
    yield centred, f"{evidence}, on for continuous actions without a file of their own; frozen within an update"
    far = float(np.max(second.obs))
    yield far == 10, f"1,000,000 becomes {far:g} (clip_obs)"
    sums = 2.0 * np.cumsum(config.gamma ** np.arange(64))
    wanted, got = 2.0 / float(np.std(sums)), float(first.reward[0, 0])
    evidence = f"2 becomes {got:.4f}, 2 / deviation of the returns is {wanted:.4f}, with normalize_reward"
    yield abs(got - wanted) < 1e-3, evidence
    huge = float(np.max(second.reward))
    yield huge == 10, f"1,000,000 becomes {huge:g} (clip_reward)"
