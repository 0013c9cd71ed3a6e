"""Soft actor-critic with learned temperature, https://arxiv.org/abs/1812.05905, for continuous actions and, with a
categorical policy, for discrete ones (https://arxiv.org/abs/1910.07207)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.deterministic import saturation
from gymnasium_solver.algorithms.ensembles import ensemble_values, init_ensemble, least
from gymnasium_solver.algorithms.interface import Actor, Algorithm, Numbers, Spaces, State
from gymnasium_solver.algorithms.normalizer import make_normalizer
from gymnasium_solver.algorithms.policy_gradient import dead_units
from gymnasium_solver.algorithms.replay_learning import (
    critic_metrics,
    gradient_metrics,
    make_descent,
    parameter_report,
    polyak,
    require_bounded_box,
    run_steps,
    trunk_of,
    unserved,
)
from gymnasium_solver.config.schema import SACConfig
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.networks.critics import Critic, continuous_critic, discrete_critic
from gymnasium_solver.networks.policy import PolicyNetwork, make_policy
from gymnasium_solver.networks.state_dependent import draw_functions
from gymnasium_solver.ops import distributions, tanh_gaussian
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.scalars import Scalars

_DISCRETE_TARGET = 1 / 3  # of the highest entropy there is; the paper's 0.98 leaves a policy little room to be sure


class Actions(NamedTuple):
    """What differs between continuous and discrete actions."""

    policy: PolicyNetwork
    critic: Critic
    target_entropy: Callable[[Array | None], Array | float]  # mask [B, A] of the states it is compared in
    draw_noise: Callable[[np.random.Generator, tuple[int, ...], Numbers], np.ndarray]
    draw_chance: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    act: Callable[[Any, Array, Array, Array | None], Array]
    mode: Callable[[Array], Array]
    # Policy and critic parameters, obs, mask, chance, temperature → soft value and entropy, [B] each
    soft_value: Callable[[Any, Any, Array, Array | None, Array, Array], tuple[Array, Array]]
    chosen: Callable[[Array, Array], Array]  # critics' output and taken actions → [n_critics, B]
    critic_input: Callable[[Array], Array | None]


def continuous(config: SACConfig, spaces: Spaces) -> Actions:
    require_bounded_box(config, spaces)
    dim = spaces.action.dim
    trunk = trunk_of(config, spaces)
    policy = make_policy(trunk, 2 * dim, sde_dim=dim if config.use_sde else 0, log_std_init=config.log_std_init)
    critic = continuous_critic(trunk_of(config, spaces, n_extra=dim))

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Numbers) -> np.ndarray:
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

    return Actions(
        policy=policy,
        critic=critic,
        target_entropy=lambda _: -float(dim),
        draw_noise=draw_noise,
        draw_chance=lambda rng, shape: rng.standard_normal((*shape, dim), dtype=np.float32),
        act=act,
        mode=lambda output: jnp.tanh(output[..., :dim]),
        soft_value=soft_value,
        chosen=lambda q, _: q,
        critic_input=lambda action: action,
    )


def discrete(config: SACConfig, spaces: Spaces) -> Actions:
    if config.use_sde:
        raise ConfigError(f"use_sde: true needs continuous actions, and those of {config.env_id} are not; use false")
    n_actions = spaces.action.sizes[0]
    most = math.log(n_actions)
    if config.ent_coef == "auto" != config.target_entropy and config.target_entropy > most:
        raise ConfigError(
            f"target_entropy: {config.target_entropy:g} is more than the {n_actions} actions of {config.env_id} can "
            f"have, so the temperature would grow without end; use less than {most:.3g} (log {n_actions}), or auto"
        )
    distribution = distributions.categorical(n_actions)
    policy = make_policy(trunk_of(config, spaces), n_actions)
    critic = discrete_critic(trunk_of(config, spaces), n_actions)

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Numbers) -> np.ndarray:
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

    return Actions(
        policy=policy,
        critic=critic,
        target_entropy=target_entropy,
        draw_noise=draw_noise,
        draw_chance=lambda rng, shape: np.zeros((*shape, 0), np.float32),
        act=act,
        mode=distribution.mode,
        soft_value=soft_value,
        chosen=chosen,
        critic_input=lambda action: None,
    )


def make(config: SACConfig, spaces: Spaces) -> Algorithm:
    kind = spaces.action.kind
    if kind == "multi_discrete":
        raise unserved(config, spaces, "ppo")
    actions = continuous(config, spaces) if kind == "box" else discrete(config, spaces)
    policy, critic = actions.policy, actions.critic
    normalizer, descent = make_normalizer(config, spaces), make_descent(config)
    learns_alpha = config.ent_coef == "auto"

    def init(rng: np.random.Generator) -> State:
        params: dict[str, Any] = {"actor": policy.init(rng), "critic": init_ensemble(critic, rng, config.n_critics)}
        state = {
            "target": jax.tree.map(np.copy, params["critic"]),
            "optimizer": {name: descent.initial(part) for name, part in params.items()},
        }
        if learns_alpha:
            params["temperature"] = {"log_alpha": np.array(math.log(config.ent_coef_init), np.float32)}
            state["optimizer"]["temperature"] = {name: np.zeros((), np.float32) for name in ("mean", "square", "count")}
        return state | {"params": params} | normalizer.initial()

    def actor(state: State) -> Actor:
        part = {"params": state["params"]["actor"]}
        return part | ({"obs_statistics": state["obs_statistics"]} if "obs_statistics" in state else {})

    def act(actor: Actor, obs: Array, noise: Array, mask: Array | None) -> Array:
        return actions.act(actor["params"], normalizer.obs(actor, obs), noise, mask)

    def act_greedy(actor: Actor, obs: Array, mask: Array | None) -> Array:
        output = policy.output(actor["params"], normalizer.obs(actor, obs))
        return actions.mode(mask_logits(output, mask))

    def value(state: State, obs: Array) -> Array:
        obs, params = normalizer.obs(state, obs), state["params"]
        mode = actions.mode(policy.output(params["actor"], obs))
        q = ensemble_values(critic, params["critic"], obs, actions.critic_input(mode))
        return least(actions.chosen(q, mode))

    def critic_loss(params: Any, row: dict[str, Array], target: Array) -> tuple[Array, tuple[dict[str, Array], Array]]:
        q = ensemble_values(critic, params, row["obs"], actions.critic_input(row["action"]))
        q = actions.chosen(q, row["action"])
        error = q - target
        loss = 0.5 * jnp.mean(jnp.sum(row["weight"] * jnp.square(error), axis=0))
        return loss, (critic_metrics(q, error, target) | {"train/loss/value": loss}, jnp.mean(jnp.abs(error), axis=0))

    def actor_loss(params: Any, critic_params: Any, row: dict[str, Array], alpha: Array) -> tuple[Array, Array]:
        soft, entropy = actions.soft_value(
            params, critic_params, row["obs"], row.get("action_mask"), row["chance"][0], alpha
        )
        return -jnp.mean(soft), jnp.mean(entropy)

    def update(
        state: State, batch: dict[str, Array], hp: dict[str, Array], chance: Array
    ) -> tuple[State, Scalars, Array]:
        params = {name: state["params"][name] for name in ("actor", "critic")}
        layouts = {name: Layout.of(part) for name, part in params.items()}
        value_lr, alpha_lr = hp.get("value_lr", hp["policy_lr"]), hp.get("ent_coef_lr", hp["policy_lr"])
        rows = normalizer.minibatches(state, batch) | {"chance": chance}

        def step(carry: dict[str, Any], row: dict[str, Array]) -> tuple[dict[str, Any], tuple[Scalars, Array]]:
            online, optimizer = carry["online"], dict(carry["optimizer"])
            alpha = jnp.exp(carry["log_alpha"]) if learns_alpha else hp["ent_coef"]
            actor_params = layouts["actor"].unflatten(online["actor"])
            worth, _ = actions.soft_value(
                actor_params,
                layouts["critic"].unflatten(carry["target"]),
                row["next_obs"],
                row.get("next_action_mask"),
                row["chance"][1],
                alpha,
            )
            aim = row["reward"] + row["discount"] * worth
            gradients, (metrics, error) = jax.grad(critic_loss, has_aux=True)(
                layouts["critic"].unflatten(online["critic"]), row, aim
            )
            critic_vector, optimizer["critic"], critic_squares = descent.step(
                online["critic"], optimizer["critic"], gradients, value_lr, layouts["critic"]
            )
            fixed = layouts["critic"].unflatten(critic_vector)
            (loss, entropy), gradients = jax.value_and_grad(actor_loss, has_aux=True)(actor_params, fixed, row, alpha)
            actor_vector, optimizer["actor"], actor_squares = descent.step(
                online["actor"], optimizer["actor"], gradients, hp["policy_lr"], layouts["actor"]
            )
            log_alpha = carry["log_alpha"]
            if learns_alpha:
                wanted = config.target_entropy
                target = actions.target_entropy(row.get("action_mask")) if wanted == "auto" else float(wanted)
                gradient = entropy - target  # of log_alpha · (entropy − target): higher entropy, less of it
                log_alpha, optimizer["temperature"] = scalar_adam(
                    log_alpha, gradient, optimizer["temperature"], alpha_lr
                )
            metrics |= gradient_metrics(critic_squares, actor_squares)
            metrics |= {
                "train/loss/policy": loss,
                "train/loss/entropy": -entropy,
                "train/loss/total": loss + metrics["train/loss/value"],
                "train/metrics/entropy": entropy,
                "train/metrics/alpha": jnp.asarray(alpha),
            }
            after = {
                "online": {"actor": actor_vector, "critic": critic_vector},
                "target": polyak(carry["target"], critic_vector, config.tau),
                "optimizer": optimizer,
                "log_alpha": log_alpha,
            }
            return after, (Scalars.of(metrics), error)

        start = {
            "online": {name: layouts[name].flatten(part) for name, part in params.items()},
            "target": layouts["critic"].flatten(state["target"]),
            "optimizer": state["optimizer"],
            "log_alpha": state["params"]["temperature"]["log_alpha"] if learns_alpha else jnp.zeros(()),
        }
        end, (stacked, error) = run_steps(step, start, rows, config.updates)
        new: dict[str, Any] = {name: layouts[name].unflatten(vector) for name, vector in end["online"].items()}
        if learns_alpha:
            new["temperature"] = {"log_alpha": end["log_alpha"]}
        after = state | {
            "params": new,
            "target": layouts["critic"].unflatten(end["target"]),
            "optimizer": end["optimizer"],
        }
        return after, stacked.mean(jnp.ones(config.updates)), error

    def report(before: State, state: State, batch: dict[str, Array]) -> Scalars:
        obs, params = normalizer.obs(state, batch["obs"][0]), state["params"]
        metrics = {"train/metrics/dead_units": dead_units(policy.activations(params["actor"], obs))}
        if kind == "box":
            output = policy.output(params["actor"], obs)
            mean, log_std = tanh_gaussian.split(output)
            metrics |= {
                "train/metrics/action_saturation": saturation(mean),
                "train/metrics/policy_std": jnp.mean(jnp.exp(log_std)),
            }
        return Scalars.of(metrics | parameter_report(before["params"], params, state["target"], params["critic"]))

    scheduled = ["policy_lr"] + ([] if learns_alpha else ["ent_coef"])
    scheduled += [name for name in ("value_lr", "ent_coef_lr") if getattr(config, name) is not None]
    return Algorithm(
        init=init,
        actor=actor,
        act=act,
        act_greedy=act_greedy,
        value=value,
        draw_noise=actions.draw_noise,
        draw_shuffle=lambda rng: np.stack(
            [actions.draw_chance(rng, (config.updates, config.batch_size)) for _ in range(2)], axis=1
        ),
        update=update,
        observe=normalizer.observe,
        forget_episodes=normalizer.forget_episodes,
        report=report,
        scheduled=tuple(scheduled),
        gradient_steps=config.updates,
    )


def scalar_adam(value: Array, gradient: Array, state: dict[str, Array], rate: Array) -> tuple[Array, dict[str, Array]]:
    """Adam (https://arxiv.org/abs/1412.6980) for the one number that the temperature is."""
    count = state["count"] + 1
    mean = 0.9 * state["mean"] + 0.1 * gradient
    square = 0.999 * state["square"] + 0.001 * jnp.square(gradient)
    step = (mean / (1 - 0.9**count)) / (jnp.sqrt(square / (1 - 0.999**count)) + 1e-8)
    return value - rate * step, {"mean": mean, "square": square, "count": count}
