"""The list of details, looked for in our PPO: measured where there is something to measure, else read from configs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import jax.numpy as jnp
import numpy as np

from gymnasium_solver.algorithms.policy_gradient import make_parts
from gymnasium_solver.config.cards.ppo import PPOConfig
from gymnasium_solver.config.load import load_config, shipped
from gymnasium_solver.config.schedules import Schedule, value_at
from gymnasium_solver.ops import losses, masked
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.verify.compliance import own_update, reference
from gymnasium_solver.verify.compliance.details import DETAILS, LSTM, finding
from gymnasium_solver.verify.compliance.own_environments import atari_details, continuous_details
from gymnasium_solver.verify.compliance.results import Finding, Presence, Report
from gymnasium_solver.verify.compliance.samples import loss_batch

Array = np.ndarray
DEBUG_NAMES = (
    "train/loss/policy",
    "train/loss/value",
    "train/metrics/entropy",
    "train/metrics/kl_divergence",
    "train/metrics/clip_fraction",
)


def present_if(holds: bool) -> Presence:
    return "present" if holds else "different"


def default(field: str) -> Any:
    return PPOConfig.model_fields[field].default


def own_details(numbers: Report) -> list[Finding]:
    """`numbers`: what the checks of our loss and GAE functions have found."""
    rows = [*_core(numbers), *atari_details(), *continuous_details(), *_lstm(), _multi_discrete()]
    assert [row.number for row in rows] == list(range(1, len(DETAILS) + 1))
    return rows


def _core(numbers: Report) -> Iterator[Finding]:
    variants = [f"{env_id}:{variant}" for env_id, variant, _ in shipped() if variant.startswith("ppo")]
    ours = [config for config in map(load_config, variants) if isinstance(config, PPOConfig)]

    def share(holds: Callable[[PPOConfig], bool]) -> str:
        return f"{sum(map(holds, ours))} of {len(ours)} shipped PPO variants"

    envs = default("n_envs")
    several = share(lambda config: config.n_envs > 1)
    yield finding(1, present_if(envs > 1), f"n_envs {envs} by default, more than one in {several}")
    yield finding(2, *_initial_weights())
    epsilon = _adam_epsilon()
    yield finding(3, present_if(abs(epsilon - 1e-5) < 1e-7), f"{epsilon:.1e}, measured from one step")
    falling = Schedule(start=1.0, end=0.0)
    halfway = value_at(falling, 50, 100)
    status: Presence = "present" if halfway == 0.5 and isinstance(default("policy_lr"), Schedule) else "different"
    scheduled = share(lambda config: isinstance(config.policy_lr, Schedule))
    yield finding(4, status, f"constant by default; a schedule, at {halfway:g} of its start halfway, in {scheduled}")
    wrong = [check.check for check in numbers.checks if check.status == "fail"]
    yield finding(
        5, present_if(not wrong), "reference values reproduced" if not wrong else f"fails: {', '.join(wrong)}"
    )
    yield finding(6, *_shuffled())
    yield finding(7, *_normalised())
    yield finding(8, *_surrogate())
    yield finding(9, *_value_clip(share(lambda config: config.clip_range_vf is not None)))
    bonus = share(lambda config: config.ent_coef != 0)
    weights = f"vf_coef {default('vf_coef'):g} on the mean squared error without a factor ½, as in Stable-Baselines3"
    yield finding(10, "present", f"{weights}; ent_coef {default('ent_coef'):g} by default, above 0 in {bonus}")
    norm = _clipped_norm()
    yield finding(11, present_if(abs(norm - 0.5) < 1e-3), f"a gradient of norm 100 becomes one of {norm:.3f}")
    metrics = own_update.descended("discrete").metrics
    missing = [name for name in DEBUG_NAMES if name not in metrics]
    yield finding(
        12, present_if(not missing), f"{len(metrics)} numbers an update" + "".join(f", no {n}" for n in missing)
    )
    parts = [set(own_update.make(shared_network=shared).state["params"]["trunk"]) for shared in (False, True)]
    both = parts == [{"policy", "value"}, {"shared"}]
    yield finding(13, present_if(both), "separate by default, one trunk with shared_network: true")


def _initial_weights() -> tuple[Presence, str]:
    params = own_update.fresh("discrete").init(np.random.default_rng(0))["params"]
    hidden = [layer for trunk in params["trunk"].values() for layer in trunk["dense"]]
    groups = {"hidden": hidden, "policy head": [params["actor_head"]], "value head": [params["critic_head"]]}
    wanted = {"hidden": np.sqrt(2), "policy head": 0.01, "value head": 1.0}
    spread = {
        name: np.concatenate([np.linalg.svd(layer["weight"], compute_uv=False) for layer in layers])
        for name, layers in groups.items()
    }
    right = all(np.allclose(spread[name], gain, rtol=1e-4) for name, gain in wanted.items())
    flat = all(not layer["bias"].any() for layers in groups.values() for layer in layers)
    values = ", ".join(f"{name} {singular.mean():.4g}" for name, singular in spread.items())
    return present_if(right and flat), f"all singular values: {values}; biases {'0' if flat else 'not 0'}"


def _one_step(size: float, **fields: Any) -> Array:
    """What a gradient of equal components and this norm does to the parameters at learning rate 1."""
    config = own_update.make(**fields).config
    parts = make_parts(config, own_update.spec_for("discrete"))
    state = parts.init(np.random.default_rng(0))
    layout = Layout.of(state["params"])
    before = layout.flatten(state["params"])
    gradient = layout.unflatten(jnp.full(before.shape, size / np.sqrt(before.size), jnp.float32))
    after, _, _ = parts.gradient_step(before, state["optimizer"], gradient, jnp.float32(1), layout)
    return np.asarray(before - after, float)


def _adam_epsilon() -> float:
    """Adam's first step is g / (g + epsilon): solved for epsilon, at a gradient of about its size."""
    count = _one_step(0.0, optimizer="sgd").size
    component = 1e-5
    step = float(np.median(_one_step(component * np.sqrt(count))))
    return component * (1 / step - 1)


def _clipped_norm() -> float:
    return float(np.linalg.norm(_one_step(100.0, optimizer="sgd")))


def _shuffled() -> tuple[Presence, str]:
    made = own_update.make(n_epochs=3)
    rows = made.config.rollout
    epochs = made.algorithm.draw_shuffle(np.random.default_rng(0)).reshape(3, rows)
    whole = all(np.array_equal(np.sort(epoch), np.arange(rows)) for epoch in epochs)
    anew = not np.array_equal(epochs[0], epochs[1]) and not np.array_equal(epochs[0], np.arange(rows))
    return present_if(whole and anew), "every row once an epoch, in another order each time"


def _normalised() -> tuple[Presence, str]:
    rows = np.arange(8, dtype=np.float32) ** 2
    scaled = np.asarray(masked.standardize(rows, np.ones(8, np.float32)))  # type: ignore[arg-type]
    right = abs(scaled.mean()) < 1e-6 and abs(scaled.std() - 1) < 1e-5 and default("normalize_advantages")
    return present_if(right), "mean 0, deviation 1 (ddof 0) in each minibatch, by default"


def _surrogate() -> tuple[Presence, str]:
    batch = loss_batch()
    arrays = (batch.log_ratio, batch.advantages, np.ones_like(batch.advantages))
    got = float(losses.clipped_surrogate(*arrays, batch.clip_range))  # type: ignore[arg-type]
    wanted = reference.surrogate_loss(batch.log_prob, batch.old_log_prob, batch.advantages, batch.clip_range)
    return present_if(abs(got - wanted) < 1e-5), f"reference {wanted:.5f}, ours {got:.5f}; clip_range 0.2 by default"


def _value_clip(used: str) -> tuple[Presence, str]:
    batch = loss_batch()
    arrays = (batch.values, batch.old_values, batch.returns, np.ones_like(batch.values))
    got = float(losses.clipped_value_error(*arrays, batch.clip_range_vf))  # type: ignore[arg-type]
    wanted = reference.clipped_value_loss(batch.values, batch.old_values, batch.returns, batch.clip_range_vf)
    right = "as the reference" if abs(got - wanted) < 1e-5 else f"{got:.5f} for {wanted:.5f}"
    on = default("clip_range_vf") is not None
    return present_if(on), f"off by default and on in {used}; with clip_range_vf set {right}"


def _lstm() -> Iterator[Finding]:
    kinds = get_args(PPOConfig.model_fields["network"].annotation)
    for number, detail in enumerate(DETAILS, start=1):
        if detail.group == LSTM:
            yield finding(number, "absent", f"no recurrent network (network: {', '.join(kinds)})")


def _multi_discrete() -> Finding:
    error = own_update.descended("multi_discrete").error
    return finding(len(DETAILS), present_if(error < 2e-3), f"gradient of an update as in NumPy, error {error:.1e}")
