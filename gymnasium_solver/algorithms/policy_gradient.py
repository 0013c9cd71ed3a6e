"""The update that A2C and REINFORCE share: one policy-gradient step on the whole of each fresh rollout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Batch, Carry, Extras, Hp, Metrics, Spaces
from gymnasium_solver.config.schema import A2CConfig, ReinforceConfig
from gymnasium_solver.networks.build import StochasticPolicy, stochastic_policy_for
from gymnasium_solver.ops import losses, masked
from gymnasium_solver.ops.descent import descent_for, gradient_metrics, learning_rates
from gymnasium_solver.ops.diagnostics import change_metrics, dead_units, entropy_metrics
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import Rollout, flatten_rows, normalizer_for
from gymnasium_solver.ops.returns import Estimates
from gymnasium_solver.ops.scalars import Scalars


class State(NamedTuple):
    params: Any
    optimizer: Any
    obs_statistics: Any
    return_statistics: Any
    return_carry: Any


class Rows(NamedTuple):
    """A rollout's rows, [B, …] each."""

    obs: Array
    action: Array
    advantage: Array
    target: Array
    weight: Array
    mask: Array | None


class Settings(NamedTuple):
    policy: StochasticPolicy
    learns_value: bool


def loss(params: Any, rows: Rows, hp: Hp, settings: Settings) -> tuple[Array, tuple[Metrics, Array]]:
    """Policy gradient, value error and entropy bonus; also the log-probabilities, for the KL of the step."""
    log_prob, entropy, value = settings.policy.evaluate(params, rows.obs, rows.action, rows.mask)
    policy_loss = losses.policy_gradient(log_prob, rows.advantage, rows.weight)
    value_loss = losses.value_error(value, rows.target, rows.weight)
    entropy = masked.mean(entropy, rows.weight)
    total = policy_loss - hp["ent_coef"] * entropy + (hp["vf_coef"] * value_loss if settings.learns_value else 0.0)
    metrics = {"train/loss/policy": policy_loss, "train/loss/value": value_loss, "train/loss/total": total}
    return total, (metrics | entropy_metrics(entropy, settings.policy.max_entropy), log_prob)


def make_policy_gradient(
    config: A2CConfig | ReinforceConfig,
    spaces: Spaces,
    estimate: Callable[[Rollout, Array], tuple[Estimates, Array]],
    *,
    learns_value: bool = True,
) -> Algorithm:
    """`estimate` takes a rollout and the values of its observations [T+1, N]; it gives advantages and targets, and
    which rows count (weights [T, N])."""
    settings = Settings(stochastic_policy_for(config, spaces), learns_value)
    policy, normalizer, descent = settings.policy, normalizer_for(config, spaces), descent_for(config)

    def init(rng: np.random.Generator) -> State:
        params = policy.init(rng)
        return State(params, descent.initial(params), **normalizer.initial())

    def prepare(state: State, batch: Batch) -> tuple[Rows, Estimates, State]:
        rollout, after = normalizer.rollout(state, batch)
        value = policy.value(state.params, flatten_rows(rollout.obs)).reshape(rollout.obs.shape[:2])
        estimates, counts = estimate(rollout, value)
        advantage, target, weight = (flatten_rows(x) for x in (estimates.advantage, estimates.target, counts))
        if config.normalize_advantages:
            advantage = masked.standardize(advantage, weight)
        mask = None if rollout.mask is None else flatten_rows(rollout.mask)
        obs, action = flatten_rows(rollout.obs[:-1]), flatten_rows(rollout.action)
        return Rows(obs, action, advantage, target, weight, mask), estimates, after

    def update(state: State, batch: Batch, hp: Hp, _: Array) -> tuple[State, Scalars, Estimates]:
        rows, estimates, after = prepare(state, batch)
        layout = Layout.of(state.params)
        gradients, (metrics, old_log_prob) = jax.grad(loss, has_aux=True)(state.params, rows, hp, settings)
        before = layout.flatten(state.params)
        vector, optimizer, norms = descent.step(before, state.optimizer, gradients, learning_rates(layout, hp), layout)
        after = after._replace(params=layout.unflatten(vector), optimizer=optimizer)
        log_ratio = policy.log_prob(after.params, rows.obs, rows.action, rows.mask) - old_log_prob
        metrics |= gradient_metrics(norms) | change_metrics(before, vector)
        metrics["train/metrics/kl_divergence"] = losses.kl_estimate(log_ratio, rows.weight)
        metrics["train/metrics/dead_units"] = dead_units(policy.activations(state.params, rows.obs))
        if policy.is_gaussian:
            metrics["train/metrics/policy_std"] = jnp.mean(jnp.exp(state.params["actor_head"]["log_std"]))
        return after, Scalars.of(metrics), estimates

    def gradients(state: State, batch: Batch, hp: Hp, noise: Array) -> dict[str, Array]:
        """Of the whole rollout: [1, n] for the policy, and for what the value loss adds."""
        rows, _, _ = prepare(state, batch)
        of = lambda hp: Layout.of(state.params).flatten(  # noqa: E731
            jax.grad(loss, has_aux=True)(state.params, rows, hp, settings)[0]
        )
        whole, of_policy = of(hp), of({**hp, "vf_coef": jnp.zeros(())})
        return {"policy": of_policy[None], "value": (whole - of_policy)[None]}

    def actor(state: State) -> Actor:
        return Actor(policy.acting_part(state.params), state.obs_statistics)

    def act(actor: Actor, carry: Carry, obs: Array, noise: Array, mask: Array | None) -> tuple[Array, Carry, Extras]:
        return policy.sample(actor.params, normalizer.obs(actor, obs), noise, mask), carry, {}

    def greedy(actor: Actor, carry: Carry, obs: Array, mask: Array | None) -> tuple[Array, Carry]:
        return policy.mode(actor.params, normalizer.obs(actor, obs), mask), carry

    return Algorithm(
        init=init,
        actor=actor,
        act=act,
        greedy=greedy,
        value=lambda state, obs: policy.value(state.params, normalizer.obs(state, obs)),
        acting_noise=lambda rng, shape, _: policy.draw_noise(rng, shape),
        update_noise=lambda rng: np.zeros(0, np.int32),
        update=update,
        gradients=gradients,
        scheduled=("policy_lr", "vf_coef", "ent_coef") + (("value_lr",) if config.value_lr is not None else ()),
        gradient_steps=1,
        forget_episodes=normalizer.forget_episodes,
    )
