"""Soft actor-critic with learned temperature, https://arxiv.org/abs/1812.05905, for continuous actions and, with a
categorical policy, for discrete ones (https://arxiv.org/abs/1910.07207)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Batch, Carry, Extras, Hp, Metrics, Spaces
from gymnasium_solver.config.schema import SACConfig
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.networks.build import trunk_for
from gymnasium_solver.networks.critics import Critic, continuous_critic, discrete_critic
from gymnasium_solver.networks.ensembles import ensemble_values, init_ensemble, least
from gymnasium_solver.networks.policy import PolicyNetwork, make_policy
from gymnasium_solver.networks.state_dependent import draw_functions
from gymnasium_solver.ops import distributions, tanh_gaussian
from gymnasium_solver.ops.descent import descent_for, gradient_metrics, polyak
from gymnasium_solver.ops.diagnostics import critic_metrics, dead_units, parameter_metrics, saturation
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import normalizer_for
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.ops.scans import gradient_steps

_DISCRETE_TARGET = 1 / 3  # of the highest entropy there is; the paper's 0.98 leaves a policy little room to be sure


class State(NamedTuple):
    params: Any  # {"actor": …, "critic": …} and, where it is learned, {"temperature": {"log_alpha": …}}
    target: Any
    optimizer: Any
    obs_statistics: Any
    return_statistics: Any
    return_carry: Any


class Settings(NamedTuple):
    """Networks, and what differs between continuous and discrete actions."""

    policy: PolicyNetwork
    critic: Critic
    target_entropy: Callable[[Array | None], Array | float]  # mask [B, A] of the states it is compared in
    acting_noise: Callable[[np.random.Generator, tuple[int, ...], Mapping[str, float]], np.ndarray]
    policy_noise: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]  # of actions drawn in the losses
    act: Callable[[Any, Array, Array, Array | None], Array]
    mode: Callable[[Array], Array]
    # Policy and critic parameters, obs, mask, noise, temperature → soft value and entropy, [B] each
    soft_value: Callable[[Any, Any, Array, Array | None, Array, Array], tuple[Array, Array]]
    chosen: Callable[[Array, Array], Array]  # critics' output and taken actions → [n_critics, B]
    critic_input: Callable[[Array], Array | None]


def targets(actor: Any, critic: Any, batch: Batch, noise: Array, alpha: Array, settings: Settings) -> Array:
    """What the value of each transition's action should be [B]; `critic` is the target network."""
    next_value, _ = settings.soft_value(actor, critic, batch["next_obs"], batch.get("next_action_mask"), noise, alpha)
    return batch["reward"] + batch["discount"] * next_value


def critic_loss(params: Any, batch: Batch, target: Array, settings: Settings) -> tuple[Array, tuple[Metrics, Array]]:
    """Of one minibatch [B, …], with the metrics and the mean absolute errors [B]."""
    q = ensemble_values(settings.critic, params, batch["obs"], settings.critic_input(batch["action"]))
    q = settings.chosen(q, batch["action"])
    error = q - target
    loss = 0.5 * jnp.mean(jnp.sum(batch["weight"] * jnp.square(error), axis=0))
    return loss, (critic_metrics(q, error, target) | {"train/loss/value": loss}, jnp.mean(jnp.abs(error), axis=0))


def actor_loss(
    params: Any, critic: Any, batch: Batch, noise: Array, alpha: Array, settings: Settings
) -> tuple[Array, Array]:
    """Minus the soft value of the policy's actions, and their mean entropy."""
    soft, entropy = settings.soft_value(params, critic, batch["obs"], batch.get("action_mask"), noise, alpha)
    return -jnp.mean(soft), jnp.mean(entropy)


def continuous(config: SACConfig, spaces: Spaces) -> Settings:
    dim = spaces.action.dim
    trunk = trunk_for(config, spaces)
    policy = make_policy(trunk, 2 * dim, sde_dim=dim if config.use_sde else 0, log_std_init=config.log_std_init)
    critic = continuous_critic(trunk_for(config, spaces, n_extra=dim))

    def acting_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Mapping[str, float]) -> np.ndarray:
        """[..., 1 + dim + n]: whether the action is random, that action, and the noise of the policy's own."""
        random = np.full((*shape, 1), hp.get("random_actions", 0.0), np.float32)
        uniform = rng.uniform(-1, 1, (*shape, dim)).astype(np.float32)
        if config.use_sde:
            normal = draw_functions(rng, shape, trunk.width, dim, config.sde_sample_freq)
            normal = normal.reshape(*shape, -1)
        else:
            normal = rng.standard_normal((*shape, dim), dtype=np.float32)
        return np.concatenate([random, uniform, normal], axis=-1)

    def act(params: Any, obs: Array, noise: Array, _: Array | None) -> Array:
        random, uniform, normal = noise[..., :1], noise[..., 1 : 1 + dim], noise[..., 1 + dim :]
        if config.use_sde:
            functions = normal.reshape(-1, trunk.width, dim)
            output, normal = policy.output_and_noise(params, obs, functions)
        else:
            output = policy.output(params, obs)
        return jnp.where(random > 0, uniform, tanh_gaussian.sample(output, normal)[0])

    def soft_value(
        params: Any, critic_params: Any, obs: Array, _: Array | None, normal: Array, alpha: Array
    ) -> tuple[Array, Array]:
        action, log_prob = tanh_gaussian.sample(policy.output(params, obs), normal)
        q = least(ensemble_values(critic, critic_params, obs, action))
        return q - alpha * log_prob, -log_prob

    return Settings(
        policy=policy,
        critic=critic,
        target_entropy=lambda _: -float(dim),
        acting_noise=acting_noise,
        policy_noise=lambda rng, shape: rng.standard_normal((*shape, dim), dtype=np.float32),
        act=act,
        mode=lambda output: jnp.tanh(output[..., :dim]),
        soft_value=soft_value,
        chosen=lambda q, _: q,
        critic_input=lambda action: action,
    )


def discrete(config: SACConfig, spaces: Spaces) -> Settings:
    n_actions = spaces.action.sizes[0]
    most = math.log(n_actions)
    if config.ent_coef == "auto" != config.target_entropy and config.target_entropy > most:
        raise ConfigError(
            f"target_entropy: {config.target_entropy:g} is more than the {n_actions} actions of {config.env_id} can "
            f"have, so the temperature would grow without end; use less than {most:.3g} (log {n_actions}), or auto"
        )
    distribution = distributions.categorical(n_actions)
    policy = make_policy(trunk_for(config, spaces), n_actions)
    critic = discrete_critic(trunk_for(config, spaces), n_actions)

    def acting_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Mapping[str, float]) -> np.ndarray:
        random = np.full((*shape, 1), hp.get("random_actions", 0.0), np.float32)
        return np.concatenate([random, distribution.draw_noise(rng, shape)], axis=-1)

    def act(params: Any, obs: Array, noise: Array, mask: Array | None) -> Array:
        logits = jnp.where(noise[..., :1] > 0, 0.0, policy.output(params, obs))
        return distribution.sample(mask_logits(logits, mask), noise[..., 1:])

    def soft_value(
        params: Any, critic_params: Any, obs: Array, mask: Array | None, _: Array, alpha: Array
    ) -> tuple[Array, Array]:
        log_prob = jax.nn.log_softmax(mask_logits(policy.output(params, obs), mask))
        prob = jnp.exp(log_prob)
        q = least(ensemble_values(critic, critic_params, obs, None))
        expected = jnp.sum(prob * q, axis=-1)
        entropy = -jnp.sum(prob * log_prob, axis=-1)
        return expected + alpha * entropy, entropy

    def target_entropy(mask: Array | None) -> Array | float:
        """Where few actions are allowed, little entropy is possible: a share of more would never be reached."""
        possible = most if mask is None else jnp.mean(jnp.log(jnp.maximum(jnp.sum(mask, axis=-1), 1)))
        return _DISCRETE_TARGET * possible

    def chosen(q: Array, action: Array) -> Array:
        return jnp.sum(q * jax.nn.one_hot(action, n_actions), axis=-1)

    return Settings(
        policy=policy,
        critic=critic,
        target_entropy=target_entropy,
        acting_noise=acting_noise,
        policy_noise=lambda rng, shape: np.zeros((*shape, 0), np.float32),
        act=act,
        mode=distribution.mode,
        soft_value=soft_value,
        chosen=chosen,
        critic_input=lambda action: None,
    )


def make(config: SACConfig, spaces: Spaces) -> Algorithm:
    settings = continuous(config, spaces) if spaces.action.kind == "box" else discrete(config, spaces)
    policy, critic = settings.policy, settings.critic
    normalizer, descent = normalizer_for(config, spaces), descent_for(config)
    learns_alpha = config.ent_coef == "auto"

    def init(rng: np.random.Generator) -> State:
        params: dict[str, Any] = {"actor": policy.init(rng), "critic": init_ensemble(critic, rng, config.n_critics)}
        target = jax.tree.map(np.copy, params["critic"])
        optimizer = {name: descent.initial(part) for name, part in params.items()}
        if learns_alpha:
            params["temperature"] = {"log_alpha": np.array(math.log(config.ent_coef_init), np.float32)}
            optimizer["temperature"] = {name: np.zeros((), np.float32) for name in ("mean", "square", "count")}
        return State(params, target, optimizer, **normalizer.initial())

    def temperature(params: Any, hp: Hp) -> Array:
        return jnp.exp(params["temperature"]["log_alpha"]) if learns_alpha else hp["ent_coef"]

    def update_noise(rng: np.random.Generator) -> np.ndarray:
        """[G, 2, B, …]: of the policy's actions in the present states, and in those that follow."""
        shape = (config.updates, config.batch_size)
        return np.stack([settings.policy_noise(rng, shape) for _ in range(2)], axis=1)

    def update(state: State, batch: Batch, hp: Hp, noise: Array) -> tuple[State, Scalars, Array]:
        rows = normalizer.minibatches(state, batch) | {"noise": noise}

        def step(carry: State, row: Batch) -> tuple[State, tuple[Scalars, Array]]:
            params, optimizer, alpha = dict(carry.params), dict(carry.optimizer), temperature(carry.params, hp)
            now, ahead = row["noise"][0], row["noise"][1]
            aim = targets(params["actor"], carry.target, row, ahead, alpha, settings)
            gradients, (metrics, error) = jax.grad(critic_loss, has_aux=True)(params["critic"], row, aim, settings)
            params["critic"], optimizer["critic"], critic_norms = descent.step_tree(
                params["critic"], optimizer["critic"], gradients, hp.get("value_lr", hp["policy_lr"])
            )
            (loss, entropy), gradients = jax.value_and_grad(actor_loss, has_aux=True)(
                params["actor"], params["critic"], row, now, alpha, settings
            )
            params["actor"], optimizer["actor"], actor_norms = descent.step_tree(
                params["actor"], optimizer["actor"], gradients, hp["policy_lr"]
            )
            if learns_alpha:
                wanted = config.target_entropy
                target = settings.target_entropy(row.get("action_mask")) if wanted == "auto" else float(wanted)
                gradient = entropy - target  # of log_alpha · (entropy − target): higher entropy, less of it
                log_alpha, optimizer["temperature"] = scalar_adam(
                    params["temperature"]["log_alpha"],
                    gradient,
                    optimizer["temperature"],
                    hp.get("ent_coef_lr", hp["policy_lr"]),
                )
                params["temperature"] = {"log_alpha": log_alpha}
            metrics |= gradient_metrics(critic_norms, actor_norms)
            metrics |= {
                "train/loss/policy": loss,
                "train/loss/entropy": -entropy,
                "train/loss/total": loss + metrics["train/loss/value"],
                "train/metrics/entropy": entropy,
                "train/metrics/alpha": jnp.asarray(alpha),
            }
            target = polyak(carry.target, params["critic"], config.tau)
            after = carry._replace(params=params, target=target, optimizer=optimizer)
            return after, (Scalars.of(metrics), error)

        after, (stacked, error) = gradient_steps(step, state, rows, config.updates)
        return after, stacked.mean(jnp.ones(config.updates)), error

    def gradients(state: State, batch: Batch, hp: Hp, noise: Array) -> dict[str, Array]:
        actor_params, critic_params = state.params["actor"], state.params["critic"]
        alpha = temperature(state.params, hp)

        def of_critic(row: Batch) -> Array:
            aim = targets(actor_params, state.target, row, row["noise"][1], alpha, settings)
            made = jax.grad(critic_loss, has_aux=True)(critic_params, row, aim, settings)[0]
            return Layout.of(critic_params).flatten(made)

        def of_actor(row: Batch) -> Array:
            now = row["noise"][0]
            made = jax.grad(actor_loss, has_aux=True)(actor_params, critic_params, row, now, alpha, settings)[0]
            return Layout.of(actor_params).flatten(made)

        rows = normalizer.minibatches(state, batch) | {"noise": noise}
        return {"value": jax.vmap(of_critic)(rows), "policy": jax.vmap(of_actor)(rows)}

    def report(before: Any, state: State, batch: Batch) -> Scalars:
        obs, params = normalizer.obs(state, batch["obs"][0]), state.params
        metrics = {"train/metrics/dead_units": dead_units(policy.activations(params["actor"], obs))}
        if spaces.action.kind == "box":
            mean, log_std = tanh_gaussian.split(policy.output(params["actor"], obs))
            metrics |= {
                "train/metrics/action_saturation": saturation(mean),
                "train/metrics/policy_std": jnp.mean(jnp.exp(log_std)),
            }
        return Scalars.of(metrics | parameter_metrics(before, params, state.target, params["critic"]))

    def value(state: State, obs: Array) -> Array:
        obs, params = normalizer.obs(state, obs), state.params
        mode = settings.mode(policy.output(params["actor"], obs))
        q = ensemble_values(critic, params["critic"], obs, settings.critic_input(mode))
        return least(settings.chosen(q, mode))

    def act(actor: Actor, carry: Carry, obs: Array, noise: Array, mask: Array | None) -> tuple[Array, Carry, Extras]:
        return settings.act(actor.params, normalizer.obs(actor, obs), noise, mask), carry, {}

    def greedy(actor: Actor, carry: Carry, obs: Array, mask: Array | None) -> tuple[Array, Carry]:
        output = policy.output(actor.params, normalizer.obs(actor, obs))
        return settings.mode(mask_logits(output, mask)), carry

    scheduled = ["policy_lr"] + ([] if learns_alpha else ["ent_coef"])
    scheduled += [name for name in ("value_lr", "ent_coef_lr") if getattr(config, name) is not None]
    return Algorithm(
        init=init,
        actor=lambda state: Actor(state.params["actor"], state.obs_statistics),
        act=act,
        greedy=greedy,
        value=value,
        acting_noise=settings.acting_noise,
        update_noise=update_noise,
        update=update,
        gradients=gradients,
        scheduled=tuple(scheduled),
        gradient_steps=config.updates,
        forget_episodes=normalizer.forget_episodes,
        observe=normalizer.observe,
        report=report,
    )


def scalar_adam(value: Array, gradient: Array, state: dict[str, Array], rate: Array) -> tuple[Array, dict[str, Array]]:
    """Adam (https://arxiv.org/abs/1412.6980) for the one number that the temperature is."""
    count = state["count"] + 1
    mean = 0.9 * state["mean"] + 0.1 * gradient
    square = 0.999 * state["square"] + 0.001 * jnp.square(gradient)
    step = (mean / (1 - 0.9**count)) / (jnp.sqrt(square / (1 - 0.999**count)) + 1e-8)
    return value - rate * step, {"mean": mean, "square": square, "count": count}
