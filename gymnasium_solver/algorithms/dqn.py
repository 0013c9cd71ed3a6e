"""Deep Q-learning, https://www.nature.com/articles/nature14236, with double learning (https://arxiv.org/abs/1509.06461),
dueling streams (https://arxiv.org/abs/1511.06581), n-step returns and prioritised replay, each on its own switch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Batch, Carry, Extras, Hp, Metrics, Spaces
from gymnasium_solver.config.schema import DQNConfig
from gymnasium_solver.networks.build import trunk_for
from gymnasium_solver.networks.critics import Critic, discrete_critic
from gymnasium_solver.ops import exploration, losses
from gymnasium_solver.ops.descent import descent_for, gradient_metrics, polyak
from gymnasium_solver.ops.diagnostics import critic_metrics, dead_units, parameter_metrics
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import normalizer_for
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.ops.scans import gradient_steps


class State(NamedTuple):
    params: Any
    target: Any
    optimizer: Any
    obs_statistics: Any
    return_statistics: Any
    return_carry: Any


class Settings(NamedTuple):
    network: Critic
    double: bool
    huber: bool


def targets(target: Any, online: Any, batch: Batch, settings: Settings) -> Array:
    """What the value of each transition's action should be [B], from the target network's parameters."""
    mask = batch.get("next_action_mask")
    q = mask_logits(settings.network.value(target, batch["next_obs"], None), mask)
    if settings.double:
        choice = jnp.argmax(mask_logits(settings.network.value(online, batch["next_obs"], None), mask), axis=-1)
        next_value = jnp.take_along_axis(q, choice[..., None], axis=-1)[..., 0]
    else:
        next_value = jnp.max(q, axis=-1)
    return batch["reward"] + batch["discount"] * next_value


def loss(params: Any, batch: Batch, target: Array, settings: Settings) -> tuple[Array, tuple[Metrics, Array]]:
    """Of one minibatch [B, …], with the metrics and the absolute errors [B]."""
    q = settings.network.value(params, batch["obs"], None)
    chosen = jnp.sum(q * jax.nn.one_hot(batch["action"], q.shape[-1]), axis=-1)
    error = chosen - target
    size = losses.huber(error) if settings.huber else 0.5 * jnp.square(error)
    total = jnp.mean(batch["weight"] * size)
    metrics = {"train/loss/value": total, "train/loss/total": total}
    metrics |= critic_metrics(chosen, error, target) | {"train/metrics/q_max": jnp.max(jnp.abs(q))}
    return total, (metrics, jnp.abs(error))


def make(config: DQNConfig, spaces: Spaces) -> Algorithm:
    n_actions = spaces.action.sizes[0]
    network = discrete_critic(trunk_for(config, spaces), n_actions, dueling=config.dueling)
    settings = Settings(network, config.double, config.value_loss == "huber")
    normalizer, descent = normalizer_for(config, spaces), descent_for(config)
    copies = config.target_update_interval is not None

    def init(rng: np.random.Generator) -> State:
        params = network.init(rng)
        return State(params, jax.tree.map(np.copy, params), descent.initial(params), **normalizer.initial())

    def update(state: State, batch: Batch, hp: Hp, _: Any) -> tuple[State, Scalars, Array]:
        layout, rate = Layout.of(state.params), hp["value_lr" if "value_lr" in hp else "policy_lr"]
        vector, target = layout.flatten(state.params), layout.flatten(state.target)
        rows = normalizer.minibatches(state, batch)
        if copies:
            target = jnp.where(hp["sync_target"] > 0, vector, target)
        standing = layout.unflatten(target)  # of a target network that only copies move

        def step(carry: tuple[Array, Array, Any], row: Batch) -> tuple[Any, tuple[Scalars, Array]]:
            vector, target, optimizer = carry
            online = layout.unflatten(vector)
            aim = targets(standing if copies else layout.unflatten(target), online, row, settings)
            gradients, (metrics, error) = jax.grad(loss, has_aux=True)(online, row, aim, settings)
            vector, optimizer, norms = descent.step(vector, optimizer, gradients, rate, layout)
            if not copies:
                target = polyak(target, vector, config.tau)
            return (vector, target, optimizer), (Scalars.of(metrics | gradient_metrics(norms)), error)

        start = (vector, target, state.optimizer)
        (vector, target, optimizer), (stacked, error) = gradient_steps(step, start, rows, config.updates)
        after = state._replace(params=layout.unflatten(vector), target=layout.unflatten(target), optimizer=optimizer)
        return after, stacked.mean(jnp.ones(config.updates)), error

    def gradients(state: State, batch: Batch, hp: Hp, _: Any) -> dict[str, Array]:
        def one(row: Batch) -> Array:
            aim = targets(state.target, state.params, row, settings)
            made = jax.grad(loss, has_aux=True)(state.params, row, aim, settings)[0]
            return Layout.of(state.params).flatten(made)

        return {"value": jax.vmap(one)(normalizer.minibatches(state, batch))}

    def report(before: Any, state: State, batch: Batch) -> Scalars:
        hidden = network.activations(state.params, normalizer.obs(state, batch["obs"][0]), None)
        metrics = {"train/metrics/dead_units": dead_units(hidden)}
        return Scalars.of(metrics | parameter_metrics(before, state.params, state.target, state.params))

    def values(holder: Actor | State, obs: Array, mask: Array | None) -> Array:
        return mask_logits(network.value(holder.params, normalizer.obs(holder, obs), None), mask)

    def act(actor: Actor, carry: Carry, obs: Array, noise: Array, mask: Array | None) -> tuple[Array, Carry, Extras]:
        return exploration.epsilon_greedy(values(actor, obs, mask), noise, mask), carry, {}

    def greedy(actor: Actor, carry: Carry, obs: Array, mask: Array | None) -> tuple[Array, Carry]:
        return jnp.argmax(values(actor, obs, mask), axis=-1), carry

    def acting_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Mapping[str, float]) -> np.ndarray:
        return exploration.draw_epsilon_noise(rng, shape, n_actions, 1.0 if hp.get("random_actions") else hp["epsilon"])

    return Algorithm(
        init=init,
        actor=lambda state: Actor(state.params, state.obs_statistics),
        act=act,
        greedy=greedy,
        value=lambda state, obs: jnp.max(values(state, obs, None), axis=-1),
        acting_noise=acting_noise,
        update_noise=lambda rng: (),
        update=update,
        gradients=gradients,
        scheduled=("policy_lr", "epsilon") + (("value_lr",) if config.value_lr is not None else ()),
        gradient_steps=config.updates,
        forget_episodes=normalizer.forget_episodes,
        observe=normalizer.observe,
        report=report,
    )
