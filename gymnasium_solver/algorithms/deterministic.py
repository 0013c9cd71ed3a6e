"""The update that DDPG and TD3 share: critics of a deterministic policy, and the policy that follows their gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

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
)
from gymnasium_solver.config.schema import DDPGConfig, TD3Config
from gymnasium_solver.networks.critics import continuous_critic
from gymnasium_solver.networks.policy import make_policy
from gymnasium_solver.ops import exploration
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.scalars import Scalars


def make_deterministic(
    config: DDPGConfig | TD3Config,
    spaces: Spaces,
    *,
    policy_delay: int,
    target_noise: float,
    target_noise_clip: float,
) -> Algorithm:
    require_bounded_box(config, spaces)
    dim = spaces.action.dim
    policy = make_policy(trunk_of(config, spaces), dim)
    critic = continuous_critic(trunk_of(config, spaces, n_extra=dim))
    normalizer, descent = make_normalizer(config, spaces), make_descent(config)

    def init(rng: np.random.Generator) -> State:
        params = {"actor": policy.init(rng), "critic": init_ensemble(critic, rng, config.n_critics)}
        return {
            "params": params,
            "target": jax.tree.map(np.copy, params),
            "optimizer": {name: descent.initial(part) for name, part in params.items()},
            "steps": np.zeros((), np.int32),
            "actor_report": {name: np.zeros((), np.float32) for name in ("loss", "actor_head", "trunk", "clipped")},
        } | normalizer.initial()

    def actor(state: State) -> Actor:
        part = {"params": state["params"]["actor"]}
        return part | ({"obs_statistics": state["obs_statistics"]} if "obs_statistics" in state else {})

    def action_of(params: Any, obs: Array) -> Array:
        return jnp.tanh(policy.output(params, obs))

    def act_greedy(actor: Actor, obs: Array, _: Array | None) -> Array:
        return action_of(actor["params"], normalizer.obs(actor, obs))

    def act(actor: Actor, obs: Array, noise: Array, mask: Array | None) -> Array:
        return exploration.perturbed(act_greedy(actor, obs, mask), noise)

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Numbers) -> np.ndarray:
        return exploration.draw_action_noise(
            rng,
            shape,
            dim,
            kind=config.noise,
            std=hp["noise_std"],
            theta=config.ou_theta,
            random=hp.get("random_actions", 0.0) > 0,
        )

    def draw_shuffle(rng: np.random.Generator) -> np.ndarray:
        """The noise of the target policy's actions."""
        normal = rng.standard_normal((config.updates, config.batch_size, dim), dtype=np.float32)
        return np.clip(target_noise * normal, -target_noise_clip, target_noise_clip)

    def value(state: State, obs: Array) -> Array:
        obs = normalizer.obs(state, obs)
        params = state["params"]
        return least(ensemble_values(critic, params["critic"], obs, action_of(params["actor"], obs)))

    def critic_loss(params: Any, row: dict[str, Array], target: Array) -> tuple[Array, tuple[dict[str, Array], Array]]:
        q = ensemble_values(critic, params, row["obs"], row["action"])
        error = q - target
        loss = jnp.mean(jnp.sum(row["weight"] * jnp.square(error), axis=0))
        return loss, (critic_metrics(q, error, target) | {"train/loss/value": loss}, jnp.mean(jnp.abs(error), axis=0))

    def actor_loss(params: Any, critic_params: Any, obs: Array) -> Array:
        first = {part: members[:1] for part, members in critic_params.items()}
        return -jnp.mean(ensemble_values(critic, first, obs, action_of(params, obs)))

    def update(
        state: State, batch: dict[str, Array], hp: dict[str, Array], chance: Array
    ) -> tuple[State, Scalars, Array]:
        params = state["params"]
        layouts = {name: Layout.of(part) for name, part in params.items()}
        rates = {"actor": hp["policy_lr"], "critic": hp.get("value_lr", hp["policy_lr"])}
        rows = normalizer.minibatches(state, batch) | {"chance": chance}

        def step(carry: dict[str, Any], row: dict[str, Array]) -> tuple[dict[str, Any], tuple[Scalars, Array]]:
            online, target, optimizer = carry["online"], carry["target"], carry["optimizer"]
            next_action = action_of(layouts["actor"].unflatten(target["actor"]), row["next_obs"])
            next_action = jnp.clip(next_action + row["chance"], -1.0, 1.0)
            worth = least(
                ensemble_values(critic, layouts["critic"].unflatten(target["critic"]), row["next_obs"], next_action)
            )
            aim = row["reward"] + row["discount"] * worth
            gradients, (metrics, error) = jax.grad(critic_loss, has_aux=True)(
                layouts["critic"].unflatten(online["critic"]), row, aim
            )
            critic_vector, critic_optimizer, critic_squares = descent.step(
                online["critic"], optimizer["critic"], gradients, rates["critic"], layouts["critic"]
            )

            def improve(actor: tuple[Array, Any, dict[str, Array]]) -> tuple[Any, ...]:
                vector, optimizer_state, targets = actor
                fixed = layouts["critic"].unflatten(critic_vector)
                loss, gradients = jax.value_and_grad(actor_loss)(layouts["actor"].unflatten(vector), fixed, row["obs"])
                vector, optimizer_state, squares = descent.step(
                    vector, optimizer_state, gradients, rates["actor"], layouts["actor"]
                )
                moved = {
                    "actor": polyak(targets["actor"], vector, config.tau),
                    "critic": polyak(targets["critic"], critic_vector, config.tau),
                }
                return vector, optimizer_state, moved, squares | {"loss": loss}

            def rest(actor: tuple[Array, Any, dict[str, Array]]) -> tuple[Any, ...]:
                return *actor, carry["actor_report"]  # the metrics of its last step stand until the next

            actor_now = (online["actor"], optimizer["actor"], target)
            if policy_delay == 1:
                improved = improve(actor_now)
            else:
                improved = jax.lax.cond(carry["steps"] % policy_delay == 0, improve, rest, actor_now)
            actor_vector, actor_optimizer, target, actor_report = improved
            loss = actor_report["loss"]
            metrics |= gradient_metrics(critic_squares, actor_report)
            metrics |= {"train/loss/policy": loss, "train/loss/total": loss + metrics["train/loss/value"]}
            after = {
                "online": {"actor": actor_vector, "critic": critic_vector},
                "target": target,
                "optimizer": {"actor": actor_optimizer, "critic": critic_optimizer},
                "steps": carry["steps"] + 1,
                "actor_report": actor_report,
            }
            return after, (Scalars.of(metrics), error)

        start = {
            "online": {name: layouts[name].flatten(part) for name, part in params.items()},
            "target": {name: layouts[name].flatten(part) for name, part in state["target"].items()},
            "optimizer": state["optimizer"],
            "steps": state["steps"],
            "actor_report": state["actor_report"],
        }
        end, (stacked, error) = run_steps(step, start, rows, config.updates)
        after = state | {
            "params": {name: layouts[name].unflatten(vector) for name, vector in end["online"].items()},
            "target": {name: layouts[name].unflatten(vector) for name, vector in end["target"].items()},
            "optimizer": end["optimizer"],
            "steps": end["steps"],
            "actor_report": end["actor_report"],
        }
        return after, stacked.mean(jnp.ones(config.updates)), error

    def report(before: State, state: State, batch: dict[str, Array]) -> Scalars:
        obs, params = normalizer.obs(state, batch["obs"][0]), state["params"]
        return Scalars.of(
            {
                "train/metrics/dead_units": dead_units(policy.activations(params["actor"], obs)),
                "train/metrics/action_saturation": saturation(policy.output(params["actor"], obs)),
            }
            | parameter_report(before["params"], params, state["target"]["critic"], params["critic"])
        )

    return Algorithm(
        init=init,
        actor=actor,
        act=act,
        act_greedy=act_greedy,
        value=value,
        draw_noise=draw_noise,
        draw_shuffle=draw_shuffle,
        update=update,
        observe=normalizer.observe,
        forget_episodes=normalizer.forget_episodes,
        report=report,
        scheduled=("policy_lr", "noise_std") + (("value_lr",) if config.value_lr is not None else ()),
        gradient_steps=config.updates,
    )


def saturation(before_tanh: Array) -> Array:
    """Share of actions that the tanh holds at its bound, where it passes no gradient."""
    return jnp.mean((jnp.abs(before_tanh) > 3.0).astype(jnp.float32))
