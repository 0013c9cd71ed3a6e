"""The list of details, looked for in our PPO: what an update computes is measured, options are as details.yaml says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.ppo import State
from gymnasium_solver.config.cards.ppo import IMAGE, PPOConfig
from gymnasium_solver.ops import losses
from gymnasium_solver.ops.descent import descent_for
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import normalizer_for
from gymnasium_solver.verify.compliance import own_update
from gymnasium_solver.verify.compliance.loss_terms import clipped
from gymnasium_solver.verify.compliance.own_update import config_for, initial_params, spaces_for
from gymnasium_solver.verify.compliance.report import Finding, finding, published
from gymnasium_solver.verify.compliance.samples import loss_batch

Array = np.ndarray
Measured = tuple[int, bool, str]  # number of a detail, whether it is as published, what shows it
DEFAULTS = {name: field.default for name, field in PPOConfig.model_fields.items()}
DIAGNOSTICS = ("loss/policy", "loss/value", "metrics/entropy", "metrics/kl_divergence", "metrics/clip_fraction")


def own_details(checked: list[Finding]) -> list[Finding]:
    """`checked`: those that stand as the checks of our functions do."""
    found = {detail.number: detail for detail in checked}
    for number, holds, evidence in (*_learning(), *_networks(), *_normalizers()):
        found[number] = finding(number, "present" if holds else "different", evidence)
    for number, (_, words) in enumerate(published(), start=1):
        if number not in found:
            status, _, evidence = words["here"].format(**DEFAULTS).partition("; ")
            found[number] = finding(number, status, evidence)  # type: ignore[arg-type]
    return [found[number] for number in sorted(found)]


def _learning() -> Iterator[Measured]:
    # Adam's first step is g / (g + epsilon): solved for epsilon, at a gradient of about its size.
    epsilon = 1e-5 * (1 / float(np.median(_one_step(1e-5))) - 1)
    yield 3, abs(epsilon - 1e-5) < 1e-7, f"{epsilon:.1e}, measured from one step"
    config = config_for(n_epochs=3)
    noise = make_algorithm(config, spaces_for("discrete")).update_noise(np.random.default_rng(0))
    epochs, rows = noise.reshape(3, config.rollout), np.arange(config.rollout)
    whole = all(np.array_equal(np.sort(epoch), rows) for epoch in epochs)
    anew = not any(np.array_equal(epochs[0], other) for other in (epochs[1], rows))
    yield 6, whole and anew, "every row once per epoch, each time in a different order"
    for number, kind in ((7, "discrete"), (23, "box"), (25, "box"), (37, "multi_discrete")):
        error = own_update.updated(kind).gradient_error
        yield number, error < own_update.TOLERANCE, f"gradient of an update matches NumPy, error {error:.1e}"
    batch = loss_batch()
    arrays: Any = (batch.values, batch.old_values, batch.returns, batch.weight, batch.clip_range_vf)
    error = abs(float(losses.clipped_value_error(*arrays)) - clipped("clip_range_vf", batch).mean())
    on = DEFAULTS["clip_range_vf"] is not None
    yield 9, on, f"{'on' if on else 'off'} by default; clip_range_vf against the reference: error {error:.1e}"
    norm = float(np.linalg.norm(_one_step(1.0, optimizer="sgd")))
    yield 11, abs(norm - 0.5) < 1e-3, f"a gradient of ones becomes one of norm {norm:.3f}"
    metrics = own_update.updated("discrete").metrics
    missing = "".join(f", no {name}" for name in DIAGNOSTICS if f"train/{name}" not in metrics)
    yield 12, not missing, f"{len(metrics)} numbers per update{missing}"


def _one_step(component: float, **fields: Any) -> Array:
    """What a gradient of equal components subtracts from the parameters at learning rate 1."""
    params, descent = initial_params(), descent_for(config_for(**fields))
    layout = Layout.of(params)
    before = layout.flatten(params)
    gradient = layout.unflatten(jnp.full(before.shape, component, jnp.float32))
    after, _, _ = descent.step(before, descent.initial(params), gradient, jnp.float32(1), layout)
    return np.asarray(before - after, float)


def initial_weights(**fields: Any) -> Measured:
    params = initial_params(**fields)
    hidden = [layer for trunk in params["trunk"].values() for layer in trunk["dense"]]
    right, shown = True, []
    for gain, layers in ((np.sqrt(2), hidden), (0.01, [params["actor_head"]]), (1.0, [params["critic_head"]])):
        singular = np.concatenate([np.linalg.svd(layer["weight"], compute_uv=False) for layer in layers])
        right &= np.allclose(singular, gain, rtol=1e-4) and not any(layer["bias"].any() for layer in layers)
        shown.append(f"{singular.min():.4g} to {singular.max():.4g}")
    return 2, right, f"singular values: hidden layers {shown[0]}, policy head {shown[1]}, value head {shown[2]}"


def _networks() -> Iterator[Measured]:
    yield initial_weights()
    algorithm = make_algorithm(config_for(**IMAGE), spaces_for("discrete", (84, 84, 4)))
    state = algorithm.init(np.random.default_rng(0))
    (trunk,), hidden = state.params["trunk"].values(), np.ones(4)
    for layer in (*trunk["convolutions"], *trunk["dense"]):  # a white picture stays of one colour from layer to layer
        hidden = np.maximum(hidden @ layer["weight"].reshape(-1, len(hidden), layer["weight"].shape[-1]).sum(0), 0)
    wanted = float(hidden @ state.params["critic_head"]["weight"][:, 0])
    got = float(algorithm.value(state, jnp.full((1, 84, 84, 4), 255, jnp.uint8))[0])
    same = abs(got - wanted) < 1e-4 * (1 + abs(wanted))
    yield 22, same, f"an input of 255 gives the value of an input of 1 ({got:.4f}, {wanted:.4f})"


def _normalizers() -> Iterator[Measured]:
    config = config_for(normalize_obs=True, normalize_reward=True, n_envs=4, n_steps=64)
    normalizer = normalizer_for(config, spaces_for("discrete"))
    obs = np.random.default_rng(0).normal(5, 3, (65, 4, own_update.FEATURES)).astype(np.float32)
    flags = {name: np.full((64, 4), name == "valid") for name in ("valid", "terminated", "truncated")}
    batch: Any = {"obs": obs, "action": obs, "reward": np.full((64, 4), 2.0, np.float32), **flags}
    first, state = normalizer.rollout(State(None, None, **normalizer.initial()), batch)
    outlier = np.zeros((64, 4), np.float32)
    outlier[-1, 0] = 1e6
    second, _ = normalizer.rollout(state, batch | {"obs": np.full_like(obs, 1e6), "reward": outlier})
    scaled = np.asarray(normalizer.obs(state, batch["obs"][:-1]))
    centred = abs(scaled.mean()) < 1e-3 and abs(scaled.std() - 1) < 0.02
    yield 28, centred, f"mean {scaled.mean():+.4f}, deviation {scaled.std():.3f} with normalize_obs; off by default"
    wanted, got = 2.0 / float(np.std(2.0 * np.cumsum(config.gamma ** np.arange(64)))), float(first.reward[0, 0])
    yield 30, abs(got - wanted) < 1e-3, f"2 becomes {got:.4f}, expected {wanted:.4f}, with normalize_reward"
    for number, field, largest in ((29, "clip_obs", second.obs.max()), (31, "clip_reward", second.reward.max())):
        yield number, float(largest) == 10, f"1,000,000 becomes {float(largest):g} ({field})"
