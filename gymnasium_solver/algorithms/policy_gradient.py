"""What PPO, A2C and REINFORCE share: the state, acting, normalisers, one gradient step, what an update reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Metrics, Spaces, State
from gymnasium_solver.config.schema import OnPolicyConfig
from gymnasium_solver.networks.actor_critic import ActorCritic, make_actor_critic
from gymnasium_solver.ops import distributions, masked, running_statistics
from gymnasium_solver.ops.optimizers import clip_by_norm, global_norm, initial_state, make_optimizer

_DEAD_UNIT_ROWS = 256  # observations on which units are watched
_DEAD_UNIT_SHARE = (
    0.025  # of the layer's mean spread: below it a unit says nothing (cf. https://arxiv.org/abs/2302.12902)
)


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
    prepare: Callable[[State, dict[str, Array]], tuple[Rollout, State]]
    policy: Callable[[Any, Array, Array | None], Array]  # masked distribution parameters
    gradient_step: Callable[[Any, Any, Any, dict[str, Array]], tuple[Any, Any, Metrics]]
    report: Callable[[State, State, Rollout, Array, Array, Array], Metrics]


def make_parts(config: OnPolicyConfig, spaces: Spaces) -> Parts:
    action = spaces.action
    distribution = distributions.for_actions(action.kind, action.sizes, action.dim)
    network = make_actor_critic(
        obs_shape=spaces.obs_shape,
        is_image=config.network == "cnn" or (config.network == "auto" and spaces.is_image),
        n_actor_params=distribution.n_params,
        state_independent_std=action.dim if action.kind == "box" else 0,
        hidden_dims=config.hidden_dims,
        activation=config.activation,
        shared=config.shared_network,
        orthogonal=config.ortho_init,
        log_std_init=config.log_std_init,
        dtype=jnp.bfloat16 if config.precision == "bfloat16" else jnp.float32,
    )
    optimizer = make_optimizer(config.optimizer, eps=config.optimizer_eps, weight_decay=config.weight_decay)
    normalize_obs = config.normalize_obs and not spaces.is_image

    def init(rng: np.random.Generator) -> State:
        params = network.init(rng)
        state: State = {"params": params, "optimizer": initial_state(config.optimizer, optimizer, params)}
        if normalize_obs:
            state["obs_statistics"] = running_statistics.initial(spaces.obs_shape)
        if config.normalize_reward:
            state["return_statistics"] = running_statistics.initial(())
            state["return_carry"] = np.zeros(config.n_envs, np.float32)
        return state

    def actor(state: State) -> Actor:
        part: Actor = {"params": network.acting_part(state["params"])}
        if normalize_obs:
            part["obs_statistics"] = state["obs_statistics"]
        return part

    def normalized(holder: State | Actor, obs: Array) -> Array:
        return running_statistics.normalize(holder["obs_statistics"], obs, config.clip_obs) if normalize_obs else obs

    def policy(params: Any, obs: Array, mask: Array | None) -> Array:
        return distributions.mask_logits(network.policy(params, obs), mask)

    def act(actor: Actor, obs: Array, noise: Array, mask: Array | None) -> Array:
        return distribution.sample(policy(actor["params"], normalized(actor, obs), mask), noise)

    def act_greedy(actor: Actor, obs: Array, mask: Array | None) -> Array:
        return distribution.mode(policy(actor["params"], normalized(actor, obs), mask))

    def value(state: State, obs: Array) -> Array:
        return network.value(state["params"], normalized(state, obs))

    def prepare(state: State, batch: dict[str, Array]) -> tuple[Rollout, State]:
        """Normalise with the statistics that acted; the ones of this rollout count from the next on."""
        terminated = batch["terminated"].astype(jnp.float32)
        done = jnp.maximum(terminated, batch["truncated"].astype(jnp.float32))
        weight = batch["valid"].astype(jnp.float32)
        reward, after = batch["reward"], dict(state)
        if config.normalize_reward:
            carry, sums = running_statistics.discounted_sums(state["return_carry"], reward, done, config.gamma)
            statistics = running_statistics.absorb(state["return_statistics"], sums, weight)
            reward = reward / jnp.sqrt(statistics["var"] + 1e-8)
            reward = jnp.clip(reward, -config.clip_reward, config.clip_reward)
            after |= {"return_statistics": statistics, "return_carry": carry}
        if normalize_obs:
            after["obs_statistics"] = running_statistics.absorb(state["obs_statistics"], batch["obs"][:-1], weight)
        obs = normalized(state, batch["obs"])
        return Rollout(obs, batch["action"], reward, terminated, done, weight, batch.get("action_mask")), after

    def gradient_step(
        params: Any, optimizer_state: Any, gradients: Any, hp: dict[str, Array]
    ) -> tuple[Any, Any, Metrics]:
        norm = global_norm(gradients)
        norms = {f"train/metrics/grad_norm/{part}": global_norm(gradients[part]) for part in gradients}
        clipped = (norm > config.max_grad_norm) if config.max_grad_norm else jnp.zeros_like(norm)
        gradients = clip_by_norm(gradients, norm, config.max_grad_norm)
        steps, optimizer_state = optimizer.update(gradients, optimizer_state, params)

        def descend(lr: Array, old: Any, step: Any) -> Any:
            return jax.tree.map(lambda p, s: p - lr * s, old, step)

        critic_lr = hp.get("value_lr", hp["policy_lr"])
        trunk = {
            name: descend(
                critic_lr if name == "value" else hp["policy_lr"], params["trunk"][name], steps["trunk"][name]
            )
            for name in params["trunk"]
        }
        params = {
            "trunk": trunk,
            "actor_head": descend(hp["policy_lr"], params["actor_head"], steps["actor_head"]),
            "critic_head": descend(critic_lr, params["critic_head"], steps["critic_head"]),
        }
        return (
            params,
            optimizer_state,
            {
                **norms,
                "train/metrics/grad_norm/all": norm,
                "train/metrics/grad_clip_fraction": clipped.astype(jnp.float32),
            },
        )

    def report(
        before: State, after: State, rollout: Rollout, advantage: Array, predicted: Array, target: Array
    ) -> Metrics:
        """Signals computed once an update; [T, N] arrays."""
        weight = rollout.weight
        old, new = before["params"], after["params"]
        moved = global_norm(jax.tree.map(lambda a, b: a - b, new, old))
        size = global_norm(old)
        metrics = {
            "train/metrics/explained_variance": masked.explained_variance(predicted, target, weight),
            "train/metrics/update_norm_ratio": moved / (size + 1e-8),
            "train/metrics/param_norm": size,
            "train/metrics/param_checksum": sum((jnp.sum(leaf) for leaf in jax.tree.leaves(new)), jnp.zeros(())),
            "train/metrics/dead_units": _dead_units(network, new, rollout.obs),
            "train/data/advantage_mean": masked.mean(advantage, weight),
            "train/data/advantage_std": jnp.sqrt(masked.variance(advantage, weight)),
            "train/data/return_mean": masked.mean(target, weight),
            "train/data/return_std": jnp.sqrt(masked.variance(target, weight)),
            "train/data/value_mean": masked.mean(predicted, weight),
            "train/data/value_std": jnp.sqrt(masked.variance(predicted, weight)),
        }
        if action.kind == "box":
            metrics["train/metrics/policy_std"] = jnp.mean(jnp.exp(new["actor_head"]["log_std"]))
        return metrics

    return Parts(distribution, network, init, actor, act, act_greedy, value, prepare, policy, gradient_step, report)


def flatten_rows(x: Array) -> Array:
    """[T, N, …] → [T·N, …]"""
    return x.reshape((-1, *x.shape[2:]))


def _dead_units(network: ActorCritic, params: Any, obs: Array) -> Array:
    """Share of hidden units of the policy whose output hardly varies over a sample of observations."""
    rows = flatten_rows(obs)[:_DEAD_UNIT_ROWS]
    spreads = [jnp.std(layer.reshape(layer.shape[0], -1), axis=0) for layer in network.activations(params, rows)]
    dead = jnp.concatenate([s <= jnp.maximum(_DEAD_UNIT_SHARE * jnp.mean(s), 1e-4) for s in spreads])
    return jnp.mean(dead.astype(jnp.float32))


def entropy_metrics(entropy: Array, max_entropy: float | None) -> Metrics:
    metrics = {"train/metrics/entropy": entropy, "train/loss/entropy": -entropy}
    if max_entropy:
        metrics["train/metrics/entropy_relative"] = entropy / max_entropy
    return metrics
