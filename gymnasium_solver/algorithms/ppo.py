"""Proximal policy optimisation, https://arxiv.org/abs/1707.06347, with the details of
https://iclr-blog-track.github.io/2022/03/25/ppo-implementation-details/ (values and log-probabilities of the rollout
are recomputed in one batch before the first step: same parameters, same numbers, and acting stays cheap)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Spaces, State, Worth
from gymnasium_solver.algorithms.policy_gradient import Numbers, entropy_metrics, flatten_rows, make_parts
from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.ops import losses, masked
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.returns import gae
from gymnasium_solver.ops.scalars import Scalars


class Minibatch(NamedTuple):
    obs: Array
    action: Array
    log_prob: Array
    advantage: Array
    value: Array
    target: Array
    weight: Array
    mask: Array | None


def make(config: PPOConfig, spaces: Spaces) -> Algorithm:
    parts = make_parts(config, spaces)
    distribution, network = parts.distribution, parts.network
    rows, minibatch = config.rollout, config.minibatch
    n_minibatches = rows // minibatch

    def draw_shuffle(rng: np.random.Generator) -> np.ndarray:
        order = np.tile(np.arange(rows, dtype=np.int32), (config.n_epochs, 1))
        return rng.permuted(order, axis=1).reshape(config.n_epochs * n_minibatches, minibatch)

    def loss(params: Any, batch: Minibatch, hp: dict[str, Array]) -> tuple[Array, Numbers]:
        output, value = network.both(params, batch.obs)
        output = mask_logits(output, batch.mask)
        log_ratio = distribution.log_prob(output, batch.action) - batch.log_prob
        advantage = batch.advantage
        if config.normalize_advantages:
            advantage = masked.standardize(advantage, batch.weight)
        policy_loss = losses.clipped_surrogate(log_ratio, advantage, batch.weight, hp["clip_range"])
        if config.clip_range_vf is None:
            value_loss = losses.value_error(value, batch.target, batch.weight)
        else:
            value_loss = losses.clipped_value_error(value, batch.value, batch.target, batch.weight, hp["clip_range_vf"])
        entropy = masked.mean(distribution.entropy(output), batch.weight)
        total = policy_loss + hp["vf_coef"] * value_loss - hp["ent_coef"] * entropy
        deviation = jnp.abs(jnp.expm1(log_ratio)) * batch.weight
        return total, {
            "train/loss/policy": policy_loss,
            "train/loss/value": value_loss,
            "train/loss/total": total,
            "train/metrics/kl_divergence": losses.kl_estimate(log_ratio, batch.weight),
            "train/metrics/clip_fraction": masked.mean(
                (deviation > hp["clip_range"]).astype(jnp.float32), batch.weight
            ),
            "train/metrics/ratio_deviation": jnp.max(deviation),
            **entropy_metrics(entropy, distribution.max_entropy),
        }

    def update(
        state: State, batch: dict[str, Array], hp: dict[str, Array], shuffle: Array
    ) -> tuple[State, Scalars, Worth]:
        rollout, after = parts.prepare(state, batch)
        params, layout = state["params"], Layout.of(state["params"])
        value = network.value(params, flatten_rows(rollout.obs)).reshape(rollout.obs.shape[:2])
        obs, action = flatten_rows(rollout.obs[:-1]), flatten_rows(rollout.action)
        mask = None if rollout.mask is None else flatten_rows(rollout.mask)
        log_prob = distribution.log_prob(parts.policy(params, obs, mask), action)
        advantage = gae(
            rollout.reward, value[:-1], value[1:], rollout.terminated, rollout.done, config.gamma, config.gae_lambda
        )
        worth = Worth(advantage, value[:-1], advantage + value[:-1])
        # One table, so that a minibatch is one gather for all its numbers.
        numbers = jnp.stack([log_prob, *(flatten_rows(x) for x in (*worth, rollout.weight))], axis=1)
        rates = parts.learning_rates(layout, hp)

        def minibatch_step(carry: tuple[Array, Any], index: Array) -> tuple[tuple[Array, Any], Scalars]:
            vector, optimizer_state = carry
            old_log_prob, signal, old_value, target, weight = jnp.unstack(numbers[index], axis=1)
            allowed = None if mask is None else mask[index]
            chosen = Minibatch(obs[index], action[index], old_log_prob, signal, old_value, target, weight, allowed)
            gradients, metrics = jax.grad(loss, has_aux=True)(layout.unflatten(vector), chosen, hp)
            vector, optimizer_state, norms = parts.gradient_step(vector, optimizer_state, gradients, rates, layout)
            return (vector, optimizer_state), Scalars.of(metrics | norms)

        before = layout.flatten(params)
        start = (before, state["optimizer"])
        if config.target_kl is None:
            (vector, optimizer_state), stacked = jax.lax.scan(minibatch_step, start, shuffle)
            made = jnp.ones(len(shuffle))
        else:  # as in Stable-Baselines3 and Spinning Up, 1.5 times the target ends the update
            steps = _until(1.5 * config.target_kl, minibatch_step)
            ((vector, optimizer_state), _), (stacked, made) = jax.lax.scan(steps, (start, jnp.array(True)), shuffle)
        after |= {"params": layout.unflatten(vector), "optimizer": optimizer_state}

        deviations = stacked["train/metrics/ratio_deviation"]
        once = {
            "train/metrics/ratio_deviation_first": deviations[0],
            "train/metrics/ratio_deviation_max": jnp.max(deviations * made),
            "train/metrics/epochs_done": jnp.mean(made),
            **parts.report(before, vector, params, obs),
        }
        return after, stacked.mean(made) | Scalars.of(once), worth

    scheduled = ["policy_lr", "clip_range", "vf_coef", "ent_coef"]
    scheduled += [name for name in ("value_lr", "clip_range_vf") if getattr(config, name) is not None]
    return Algorithm(
        init=parts.init,
        actor=parts.actor,
        act=parts.act,
        act_greedy=parts.act_greedy,
        value=parts.value,
        forget_episodes=parts.forget_episodes,
        draw_noise=parts.draw_noise,
        draw_shuffle=draw_shuffle,
        update=update,
        scheduled=tuple(scheduled),
        gradient_steps=config.n_epochs * n_minibatches,
    )


def _until(limit: float, step: Any) -> Any:
    """The minibatch step that does nothing once a minibatch's KL has passed the limit (that minibatch included)."""

    def guarded(carry: tuple[Any, Array], index: Array) -> tuple[tuple[Any, Array], tuple[Scalars, Array]]:
        current, going = carry
        shapes = jax.eval_shape(step, current, index)[1]

        def make(current: Any) -> tuple[Any, Scalars, Array]:
            stepped, metrics = step(current, index)
            within = metrics["train/metrics/kl_divergence"] <= limit
            kept = jax.tree.map(lambda new, old: jnp.where(within, new, old), stepped, current)
            return kept, metrics, within

        def skip(current: Any) -> tuple[Any, Scalars, Array]:
            return current, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes), jnp.array(False)

        current, metrics, within = jax.lax.cond(going, make, skip, current)
        return (current, within), (metrics, going.astype(jnp.float32))

    return guarded
