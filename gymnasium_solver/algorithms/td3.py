"""Twin delayed DDPG, https://arxiv.org/abs/1802.09477: the minimum of two critics, smoothed target actions, and a
policy that moves less often than they do. Without these it is DDPG, https://arxiv.org/abs/1509.02971."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Batch, Carry, Extras, Hp, Metrics, Spaces
from gymnasium_solver.config.schema import DDPGConfig, TD3Config
from gymnasium_solver.networks.build import trunk_for
from gymnasium_solver.networks.critics import Critic, continuous_critic
from gymnasium_solver.networks.ensembles import ensemble_values, init_ensemble, least
from gymnasium_solver.networks.policy import PolicyNetwork, make_policy
from gymnasium_solver.ops import exploration
from gymnasium_solver.ops.descent import Norms, descent_for, gradient_metrics, polyak
from gymnasium_solver.ops.diagnostics import critic_metrics, dead_units, parameter_metrics, saturation
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import normalizer_for
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.ops.scans import gradient_steps


class State(NamedTuple):
    params: Any  # {"actor": …, "critic": …}
    target: Any
    optimizer: Any
    steps: Any  # gradient steps made: which of them move the policy
    actor_report: Any  # loss and norms of the policy's last step, which stand until the next
    obs_statistics: Any
    return_statistics: Any
    return_carry: Any


class Settings(NamedTuple):
    policy: PolicyNetwork
    critic: Critic


def action_of(params: Any, obs: Array, settings: Settings) -> Array:
    return jnp.tanh(settings.policy.output(params, obs))


def targets(target: Any, batch: Batch, noise: Array, settings: Settings) -> Array:
    """What the value of each transition's action should be [B]; the noise smooths the target policy's actions."""
    next_action = jnp.clip(action_of(target["actor"], batch["next_obs"], settings) + noise, -1.0, 1.0)
    next_value = least(ensemble_values(settings.critic, target["critic"], batch["next_obs"], next_action))
    return batch["reward"] + batch["discount"] * next_value


def critic_loss(params: Any, batch: Batch, target: Array, settings: Settings) -> tuple[Array, tuple[Metrics, Array]]:
    """Of one minibatch [B, …], with the metrics and the mean absolute errors [B]."""
    q = ensemble_values(settings.critic, params, batch["obs"], batch["action"])
    error = q - target
    loss = jnp.mean(jnp.sum(batch["weight"] * jnp.square(error), axis=0))
    return loss, (critic_metrics(q, error, target) | {"train/loss/value": loss}, jnp.mean(jnp.abs(error), axis=0))


def actor_loss(params: Any, critic: Any, obs: Array, settings: Settings) -> Array:
    """Minus the first critic's value of the policy's actions."""
    first = {part: members[:1] for part, members in critic.items()}
    return -jnp.mean(ensemble_values(settings.critic, first, obs, action_of(params, obs, settings)))


def make(config: TD3Config, spaces: Spaces) -> Algorithm:
    return make_deterministic(config, spaces, config.policy_delay, config.target_noise, config.target_noise_clip)


def make_deterministic(
    config: DDPGConfig | TD3Config, spaces: Spaces, policy_delay: int, target_noise: float, target_noise_clip: float
) -> Algorithm:
    dim = spaces.action.dim
    policy = make_policy(trunk_for(config, spaces), dim)
    critic = continuous_critic(trunk_for(config, spaces, n_extra=dim))
    settings = Settings(policy, critic)
    normalizer, descent = normalizer_for(config, spaces), descent_for(config)

    def init(rng: np.random.Generator) -> State:
        params = {"actor": policy.init(rng), "critic": init_ensemble(critic, rng, config.n_critics)}
        return State(
            params=params,
            target=jax.tree.map(np.copy, params),
            optimizer={name: descent.initial(part) for name, part in params.items()},
            steps=np.zeros((), np.int32),
            actor_report={name: np.zeros((), np.float32) for name in ("loss", "actor_head", "trunk", "clipped")},
            **normalizer.initial(),
        )

    def update_noise(rng: np.random.Generator) -> np.ndarray:
        """The noise of the target policy's actions."""
        normal = rng.standard_normal((config.updates, config.batch_size, dim), dtype=np.float32)
        return np.clip(target_noise * normal, -target_noise_clip, target_noise_clip)

    def update(state: State, batch: Batch, hp: Hp, noise: Array) -> tuple[State, Scalars, Array]:
        rows = normalizer.minibatches(state, batch) | {"noise": noise}

        def step(carry: State, row: Batch) -> tuple[State, tuple[Scalars, Array]]:
            aim = targets(carry.target, row, row["noise"], settings)
            critic_now = carry.params["critic"]
            gradients, (metrics, error) = jax.grad(critic_loss, has_aux=True)(critic_now, row, aim, settings)
            new_critic, critic_optimizer, critic_norms = descent.step_tree(
                critic_now, carry.optimizer["critic"], gradients, hp.get("value_lr", hp["policy_lr"])
            )

            def improve(actor: Any, optimizer: Any, target: dict[str, Any]) -> tuple[Any, ...]:
                loss, gradients = jax.value_and_grad(actor_loss)(actor, new_critic, row["obs"], settings)
                actor, optimizer, norms = descent.step_tree(actor, optimizer, gradients, hp["policy_lr"])
                followed = polyak(target, {"actor": actor, "critic": new_critic}, config.tau)
                return actor, optimizer, followed, norms.squares | {"clipped": norms.clipped, "loss": loss}

            def rest(actor: Any, optimizer: Any, target: dict[str, Any]) -> tuple[Any, ...]:
                return actor, optimizer, target, carry.actor_report

            actor_now = (carry.params["actor"], carry.optimizer["actor"], carry.target)
            if policy_delay == 1:
                new_actor, actor_optimizer, target, actor_report = improve(*actor_now)
            else:
                new_actor, actor_optimizer, target, actor_report = jax.lax.cond(
                    carry.steps % policy_delay == 0, improve, rest, *actor_now
                )
            squares = {part: actor_report[part] for part in ("actor_head", "trunk")}
            metrics |= gradient_metrics(critic_norms, Norms(squares, actor_report["clipped"]))
            metrics["train/loss/policy"] = actor_report["loss"]
            metrics["train/loss/total"] = actor_report["loss"] + metrics["train/loss/value"]
            after = carry._replace(
                params={"actor": new_actor, "critic": new_critic},
                target=target,
                optimizer={"actor": actor_optimizer, "critic": critic_optimizer},
                steps=carry.steps + 1,
                actor_report=actor_report,
            )
            return after, (Scalars.of(metrics), error)

        after, (stacked, error) = gradient_steps(step, state, rows, config.updates)
        return after, stacked.mean(jnp.ones(config.updates)), error

    def gradients(state: State, batch: Batch, hp: Hp, noise: Array) -> dict[str, Array]:
        actor_params, critic_params = state.params["actor"], state.params["critic"]

        def of_critic(row: Batch) -> Array:
            aim = targets(state.target, row, row["noise"], settings)
            made = jax.grad(critic_loss, has_aux=True)(critic_params, row, aim, settings)[0]
            return Layout.of(critic_params).flatten(made)

        def of_actor(row: Batch) -> Array:
            made = jax.grad(actor_loss)(actor_params, critic_params, row["obs"], settings)
            return Layout.of(actor_params).flatten(made)

        rows = normalizer.minibatches(state, batch) | {"noise": noise}
        return {"value": jax.vmap(of_critic)(rows), "policy": jax.vmap(of_actor)(rows)}

    def report(before: Any, state: State, batch: Batch) -> Scalars:
        obs, params = normalizer.obs(state, batch["obs"][0]), state.params
        metrics = {
            "train/metrics/dead_units": dead_units(policy.activations(params["actor"], obs)),
            "train/metrics/action_saturation": saturation(policy.output(params["actor"], obs)),
        }
        return Scalars.of(metrics | parameter_metrics(before, params, state.target["critic"], params["critic"]))

    def value(state: State, obs: Array) -> Array:
        obs = normalizer.obs(state, obs)
        action = action_of(state.params["actor"], obs, settings)
        return least(ensemble_values(critic, state.params["critic"], obs, action))

    def greedy(actor: Actor, carry: Carry, obs: Array, _: Array | None) -> tuple[Array, Carry]:
        return action_of(actor.params, normalizer.obs(actor, obs), settings), carry

    def act(actor: Actor, carry: Carry, obs: Array, noise: Array, mask: Array | None) -> tuple[Array, Carry, Extras]:
        return exploration.perturbed(greedy(actor, carry, obs, mask)[0], noise), carry, {}

    def acting_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Mapping[str, float]) -> np.ndarray:
        return exploration.draw_action_noise(
            rng,
            shape,
            dim,
            kind=config.noise,
            std=hp["noise_std"],
            theta=config.ou_theta,
            random=hp.get("random_actions", 0.0) > 0,
        )

    return Algorithm(
        init=init,
        actor=lambda state: Actor(state.params["actor"], state.obs_statistics),
        act=act,
        greedy=greedy,
        value=value,
        acting_noise=acting_noise,
        update_noise=update_noise,
        update=update,
        gradients=gradients,
        scheduled=("policy_lr", "noise_std") + (("value_lr",) if config.value_lr is not None else ()),
        gradient_steps=config.updates,
        forget_episodes=normalizer.forget_episodes,
        observe=normalizer.observe,
        report=report,
    )
