"""Deep Q-learning, https://www.nature.com/articles/nature14236, with double learning (https://arxiv.org/abs/1509.06461),
dueling streams (https://arxiv.org/abs/1511.06581), n-step returns and prioritised replay, each on its own switch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Numbers, Spaces, State
from gymnasium_solver.algorithms.normalizer import make_normalizer
from gymnasium_solver.algorithms.policy_gradient import dead_units
from gymnasium_solver.algorithms.replay_learning import (
    critic_metrics,
    gradient_metrics,
    make_descent,
    parameter_report,
    polyak,
    run_steps,
    trunk_of,
    unserved,
)
from gymnasium_solver.config.schema import DQNConfig
from gymnasium_solver.networks.critics import discrete_critic
from gymnasium_solver.ops import exploration, losses
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.scalars import Scalars


def make(config: DQNConfig, spaces: Spaces) -> Algorithm:
    if spaces.action.kind != "discrete":
        raise unserved(config, spaces, "sac, td3 or ppo" if spaces.action.kind == "box" else "ppo")
    n_actions = spaces.action.sizes[0]
    network = discrete_critic(trunk_of(config, spaces), n_actions, dueling=config.dueling)
    normalizer, descent = make_normalizer(config, spaces), make_descent(config)
    copies = config.target_update_interval is not None

    def init(rng: np.random.Generator) -> State:
        params = network.init(rng)
        target = jax.tree.map(np.copy, params)
        state = {"params": params, "target": target, "optimizer": descent.initial(params)}
        return state | normalizer.initial()

    def actor(state: State) -> Actor:
        return {name: state[name] for name in ("params", "obs_statistics") if name in state}

    def values(holder: State | Actor, obs: Array, mask: Array | None) -> Array:
        return mask_logits(network.value(holder["params"], normalizer.obs(holder, obs), None), mask)

    def act(actor: Actor, obs: Array, noise: Array, mask: Array | None) -> Array:
        return exploration.epsilon_greedy(values(actor, obs, mask), noise, mask)

    def act_greedy(actor: Actor, obs: Array, mask: Array | None) -> Array:
        return jnp.argmax(values(actor, obs, mask), axis=-1)

    def value(state: State, obs: Array) -> Array:
        return jnp.max(values(state, obs, None), axis=-1)

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Numbers) -> np.ndarray:
        return exploration.draw_epsilon_noise(rng, shape, n_actions, 1.0 if hp.get("random_actions") else hp["epsilon"])

    def successor_value(target: Any, online: Any, batch: dict[str, Array]) -> Array:
        mask = batch.get("next_action_mask")
        q = mask_logits(network.value(target, batch["next_obs"], None), mask)
        if not config.double:
            return jnp.max(q, axis=-1)
        choice = jnp.argmax(mask_logits(network.value(online, batch["next_obs"], None), mask), axis=-1)
        return jnp.take_along_axis(q, choice[..., None], axis=-1)[..., 0]

    def loss(params: Any, batch: dict[str, Array], target: Array) -> tuple[Array, tuple[dict[str, Array], Array]]:
        q = network.value(params, batch["obs"], None)
        chosen = jnp.sum(q * jax.nn.one_hot(batch["action"], n_actions), axis=-1)
        error = chosen - target
        size = losses.huber(error) if config.value_loss == "huber" else 0.5 * jnp.square(error)
        total = jnp.mean(batch["weight"] * size)
        metrics = {"train/loss/value": total, "train/loss/total": total}
        metrics |= critic_metrics(chosen, error, target) | {"train/metrics/q_max": jnp.max(jnp.abs(q))}
        return total, (metrics, jnp.abs(error))

    def update(state: State, batch: dict[str, Array], hp: dict[str, Array], _: Any) -> tuple[State, Scalars, Array]:
        layout, rate = Layout.of(state["params"]), hp["value_lr" if "value_lr" in hp else "policy_lr"]
        vector, target = layout.flatten(state["params"]), layout.flatten(state["target"])
        batch = normalizer.minibatches(state, batch)
        if copies:
            target = jnp.where(hp["sync_target"] > 0, vector, target)
        rows = dict(batch)
        # A target network that stands still values all successors in one product, however many steps follow.
        ahead = copies and not config.double
        if ahead:
            flat = {name: x.reshape((-1, *x.shape[2:])) for name, x in batch.items()}
            worth = successor_value(layout.unflatten(target), None, flat).reshape(batch["reward"].shape)
            rows["target"] = batch["reward"] + batch["discount"] * worth

        def step(carry: tuple[Array, Array, Any], row: dict[str, Array]) -> tuple[Any, tuple[Scalars, Array]]:
            vector, target, optimizer_state = carry
            online = layout.unflatten(vector)
            if ahead:
                aim = row["target"]
            else:
                aim = row["reward"] + row["discount"] * successor_value(layout.unflatten(target), online, row)
            gradients, (metrics, error) = jax.grad(loss, has_aux=True)(online, row, aim)
            vector, optimizer_state, squares = descent.step(vector, optimizer_state, gradients, rate, layout)
            if not copies:
                target = polyak(target, vector, config.tau)
            return (vector, target, optimizer_state), (Scalars.of(metrics | gradient_metrics(squares)), error)

        start = (vector, target, state["optimizer"])
        (vector, target, optimizer_state), (stacked, error) = run_steps(step, start, rows, config.updates)
        after = state | {
            "params": layout.unflatten(vector),
            "target": layout.unflatten(target),
            "optimizer": optimizer_state,
        }
        return after, stacked.mean(jnp.ones(config.updates)), error

    def report(before: State, state: State, batch: dict[str, Array]) -> Scalars:
        hidden = network.activations(state["params"], normalizer.obs(state, batch["obs"][0]), None)
        return Scalars.of(
            {"train/metrics/dead_units": dead_units(hidden)}
            | parameter_report(before["params"], state["params"], state["target"], state["params"])
        )

    return Algorithm(
        init=init,
        actor=actor,
        act=act,
        act_greedy=act_greedy,
        value=value,
        draw_noise=draw_noise,
        draw_shuffle=lambda rng: (),
        update=update,
        observe=normalizer.observe,
        forget_episodes=normalizer.forget_episodes,
        report=report,
        scheduled=("policy_lr", "epsilon") + (("value_lr",) if config.value_lr is not None else ()),
        gradient_steps=config.updates,
    )
