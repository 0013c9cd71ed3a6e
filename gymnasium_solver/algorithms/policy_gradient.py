"""What PPO, A2C and REINFORCE share: the state, acting, normalisers, one gradient step, what an update reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Spaces, State
from gymnasium_solver.algorithms.normalizer import make_normalizer
from gymnasium_solver.config.base import NetworkConfig
from gymnasium_solver.config.schema import OnPolicyConfig
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.networks.actor_critic import ActorCritic, make_actor_critic
from gymnasium_solver.networks.state_dependent import draw_functions
from gymnasium_solver.ops import distributions
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.optimizers import descent_direction, initial_state, make_optimizer, norm

PARTS = ("actor_head", "critic_head", "trunk")
LEAF_PARTS = ("actor_head", "critic_head", "trunk/policy", "trunk/shared", "trunk/value")
_DEAD_UNIT_SHARE = (
    0.025  # of the layer's mean spread: below it a unit says nothing (cf. https://arxiv.org/abs/2302.12902)
)


Numbers = dict[str, Array]  # scalars by metric name


class Rollout(NamedTuple):
    """A batch with normalised observations and rewards; [T, N] unless said otherwise."""

    obs: Array  # [T+1, N, …]
    action: Array
    reward: Array
    terminated: Array
    done: Array
    weight: Array  # 1: real transition, 0: reset step
    mask: Array | None  # [T, N, A]


class Parts(NamedTuple):
    distribution: distributions.Distribution
    network: ActorCritic
    init: Callable[[np.random.Generator], State]
    actor: Callable[[State], Actor]
    act: Callable[[Actor, Array, Array, Array | None], Array]
    act_greedy: Callable[[Actor, Array, Array | None], Array]
    value: Callable[[State, Array], Array]
    draw_noise: Callable[[np.random.Generator, tuple[int, ...], dict[str, float]], np.ndarray]
    forget_episodes: Callable[[State], State]
    prepare: Callable[[State, dict[str, Array]], tuple[Rollout, State]]
    policy: Callable[[Any, Array, Array | None], Array]  # masked distribution parameters
    learning_rates: Callable[[Layout, dict[str, Array]], Array]
    gradient_step: Callable[[Array, Any, Any, Array, Layout], tuple[Array, Any, Numbers]]
    report: Callable[[Array, Array, Any, Array], Numbers]


def uses_convolutions(config: NetworkConfig, spaces: Spaces) -> bool:
    if config.network == "cnn" and len(spaces.obs_shape) != 3:
        raise ConfigError(
            f"network: cnn needs images, and the observations of {config.env_id} are {list(spaces.obs_shape)}; use auto"
        )
    return config.network == "cnn" or (config.network == "auto" and spaces.is_image)


def make_parts(config: OnPolicyConfig, spaces: Spaces) -> Parts:
    action = spaces.action
    distribution = distributions.for_actions(action.kind, action.sizes, action.dim)
    if config.use_sde and action.kind != "box":
        raise ConfigError(
            f"use_sde: true needs continuous actions, and those of {config.env_id} are not; set it to false"
        )
    sde_width = config.hidden_dims[-1] if config.use_sde else 0
    network = make_actor_critic(
        obs_shape=spaces.obs_shape,
        is_image=uses_convolutions(config, spaces),
        n_actor_params=distribution.n_params,
        std_dim=action.dim if action.kind == "box" else 0,
        use_sde=config.use_sde,
        hidden_dims=config.hidden_dims,
        activation=config.activation,
        shared=config.shared_network,
        orthogonal=config.ortho_init,
        log_std_init=config.log_std_init,
        dtype=jnp.bfloat16 if config.precision == "bfloat16" else jnp.float32,
    )
    optimizer = make_optimizer(config.optimizer, eps=config.optimizer_eps, weight_decay=config.weight_decay)
    normalizer = make_normalizer(config, spaces)

    def init(rng: np.random.Generator) -> State:
        params = network.init(rng)
        state: State = {"params": params, "optimizer": initial_state(config.optimizer, optimizer, params)}
        return state | normalizer.initial()

    def actor(state: State) -> Actor:
        part: Actor = {"params": network.acting_part(state["params"])}
        return part | ({"obs_statistics": state["obs_statistics"]} if "obs_statistics" in state else {})

    def policy(params: Any, obs: Array, mask: Array | None) -> Array:
        return distributions.mask_logits(network.policy(params, obs), mask)

    def act(actor: Actor, obs: Array, noise: Array, mask: Array | None) -> Array:
        obs = normalizer.obs(actor, obs)
        if sde_width:
            output, noise = network.policy_and_noise(actor["params"], obs, noise)
            return distribution.sample(output, noise)
        return distribution.sample(policy(actor["params"], obs, mask), noise)

    def act_greedy(actor: Actor, obs: Array, mask: Array | None) -> Array:
        return distribution.mode(policy(actor["params"], normalizer.obs(actor, obs), mask))

    def value(state: State, obs: Array) -> Array:
        return network.value(state["params"], normalizer.obs(state, obs))

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], _: dict[str, float]) -> np.ndarray:
        if sde_width:
            return draw_functions(rng, shape, sde_width, action.dim, config.sde_sample_freq)
        return distribution.draw_noise(rng, shape)

    def prepare(state: State, batch: dict[str, Array]) -> tuple[Rollout, State]:
        """Observations are normalised by the statistics that acted, and count from the next rollout on; rewards by
        statistics that know them already."""
        terminated = batch["terminated"].astype(jnp.float32)
        done = jnp.maximum(terminated, batch["truncated"].astype(jnp.float32))
        weight = batch["valid"].astype(jnp.float32)
        after = normalizer.observe(state, batch)
        obs, reward = normalizer.obs(state, batch["obs"]), normalizer.reward(after, batch["reward"])
        return Rollout(obs, batch["action"], reward, terminated, done, weight, batch.get("action_mask")), after

    def learning_rates(layout: Layout, hp: dict[str, Array]) -> Array:
        """One rate for all, or one a parameter where the critic's have their own `value_lr`."""
        if "value_lr" not in hp:
            return hp["policy_lr"]
        of_critic = {"critic_head", "trunk/value"}
        parts = sorted(
            (start, stop, name in of_critic) for name, (start, stop) in layout.segments.items() if name in LEAF_PARTS
        )
        rates = [jnp.full(stop - start, hp["value_lr" if critic else "policy_lr"]) for start, stop, critic in parts]
        return jnp.concatenate(rates)

    def gradient_step(
        params: Array, optimizer_state: Any, gradients: Any, rates: Array, layout: Layout
    ) -> tuple[Array, Any, Numbers]:
        gradient = layout.flatten(gradients)
        squares = {part: jnp.sum(jnp.square(gradient[slice(*layout.segments[part])])) for part in PARTS}
        whole = jnp.sqrt(sum(squares.values()))
        norms = {f"train/metrics/grad_norm/{part}": jnp.sqrt(square) for part, square in squares.items()}
        clips = jnp.zeros(())
        if config.max_grad_norm is not None:
            clips = (whole > config.max_grad_norm).astype(jnp.float32)
            gradient *= jnp.minimum(1.0, config.max_grad_norm / (whole + 1e-6))
        step, optimizer_state = descent_direction(
            config.optimizer, optimizer, gradient, optimizer_state, params, layout
        )
        metrics = {**norms, "train/metrics/grad_norm/all": whole, "train/metrics/grad_clip_fraction": clips}
        return params - rates * step, optimizer_state, metrics

    def report(before: Array, after: Array, params: Any, obs: Array) -> Numbers:
        """Signals of one update: parameter vectors before and after it, and the rows [B, …] it began with."""
        metrics = {
            "train/metrics/update_norm_ratio": norm(after - before) / (norm(before) + 1e-8),
            "train/metrics/param_norm": norm(after),
            "train/metrics/param_checksum": jnp.sum(after),
            "train/metrics/dead_units": dead_units(network.activations(params, obs)),
        }
        if action.kind == "box":
            metrics["train/metrics/policy_std"] = jnp.mean(jnp.exp(params["actor_head"]["log_std"]))
        return metrics

    return Parts(
        distribution,
        network,
        init,
        actor,
        act,
        act_greedy,
        value,
        draw_noise,
        normalizer.forget_episodes,
        prepare,
        policy,
        learning_rates,
        gradient_step,
        report,
    )


def flatten_rows(x: Array) -> Array:
    """[T, N, …] → [T·N, …]"""
    return x.reshape((-1, *x.shape[2:]))


def dead_units(layers: list[Array]) -> Array:
    """Share of hidden units of the policy whose output hardly varies over the rollout's observations."""
    spreads = [jnp.std(layer, axis=0) for layer in layers]
    dead = [s <= jnp.maximum(_DEAD_UNIT_SHARE * jnp.mean(s), 1e-4) for s in spreads]
    return jnp.mean(jnp.concatenate(dead).astype(jnp.float32))


def entropy_metrics(entropy: Array, max_entropy: float | None) -> Numbers:
    metrics = {"train/metrics/entropy": entropy, "train/loss/entropy": -entropy}
    if max_entropy:
        metrics["train/metrics/entropy_relative"] = entropy / max_entropy
    return metrics
