"""Proximal policy optimisation, https://arxiv.org/abs/1707.06347, with the details of
https://iclr-blog-track.github.io/2022/03/25/ppo-implementation-details/ (values and log-probabilities of the rollout
are recomputed in one batch before the first step: same parameters, same numbers, and acting stays cheap)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Batch, Carry, Extras, Hp, Metrics, Spaces
from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.networks.build import StochasticPolicy, stochastic_policy_for
from gymnasium_solver.ops import losses, masked
from gymnasium_solver.ops.descent import descent_for, gradient_metrics, learning_rates
from gymnasium_solver.ops.diagnostics import change_metrics, dead_units, entropy_metrics
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.normalizer import flatten_rows, normalizer_for
from gymnasium_solver.ops.returns import Estimates, gae
from gymnasium_solver.ops.scalars import Scalars


class State(NamedTuple):
    params: Any
    optimizer: Any
    obs_statistics: Any
    return_statistics: Any
    return_carry: Any


class Minibatch(NamedTuple):
    """[B, …] each; `log_prob` and `value` are those of the policy that acted."""

    obs: Array
    action: Array
    log_prob: Array
    advantage: Array
    value: Array
    target: Array
    weight: Array
    mask: Array | None


class Rows(NamedTuple):
    """A rollout's rows [T·N, …], to take minibatches from."""

    obs: Array
    action: Array
    numbers: Array  # one table, so that a minibatch is one gather for log_prob, advantage, value, target and weight
    mask: Array | None

    def minibatch(self, index: Array) -> Minibatch:
        log_prob, advantage, value, target, weight = jnp.unstack(self.numbers[index], axis=1)
        mask = None if self.mask is None else self.mask[index]
        return Minibatch(self.obs[index], self.action[index], log_prob, advantage, value, target, weight, mask)


class Settings(NamedTuple):
    policy: StochasticPolicy
    gamma: float
    gae_lambda: float
    normalize_advantages: bool
    clips_value: bool


def settings_for(config: PPOConfig, spaces: Spaces) -> Settings:
    return Settings(
        stochastic_policy_for(config, spaces),
        config.gamma,
        config.gae_lambda,
        config.normalize_advantages,
        config.clip_range_vf is not None,
    )


def loss(params: Any, batch: Minibatch, hp: Hp, settings: Settings) -> tuple[Array, Metrics]:
    """Clipped surrogate, value error and entropy bonus of one minibatch."""
    log_prob, entropy, value = settings.policy.evaluate(params, batch.obs, batch.action, batch.mask)
    log_ratio = log_prob - batch.log_prob
    advantage = batch.advantage
    if settings.normalize_advantages:
        advantage = masked.standardize(advantage, batch.weight)
    policy_loss = losses.clipped_surrogate(log_ratio, advantage, batch.weight, hp["clip_range"])
    if settings.clips_value:
        value_loss = losses.clipped_value_error(value, batch.value, batch.target, batch.weight, hp["clip_range_vf"])
    else:
        value_loss = losses.value_error(value, batch.target, batch.weight)
    entropy = masked.mean(entropy, batch.weight)
    total = policy_loss + hp["vf_coef"] * value_loss - hp["ent_coef"] * entropy
    deviation = jnp.abs(jnp.expm1(log_ratio)) * batch.weight
    return total, {
        "train/loss/policy": policy_loss,
        "train/loss/value": value_loss,
        "train/loss/total": total,
        "train/metrics/kl_divergence": losses.kl_estimate(log_ratio, batch.weight),
        "train/metrics/clip_fraction": masked.mean((deviation > hp["clip_range"]).astype(jnp.float32), batch.weight),
        "train/metrics/ratio_deviation": jnp.max(deviation),
        **entropy_metrics(entropy, settings.policy.max_entropy),
    }


def make(config: PPOConfig, spaces: Spaces) -> Algorithm:
    settings = settings_for(config, spaces)
    policy, normalizer, descent = settings.policy, normalizer_for(config, spaces), descent_for(config)
    n_minibatches = config.rollout // config.minibatch

    def init(rng: np.random.Generator) -> State:
        params = policy.init(rng)
        return State(params, descent.initial(params), **normalizer.initial())

    def prepare(state: State, batch: Batch) -> tuple[Rows, Estimates, State]:
        """Rows with advantages, and the state after the rollout has been counted in the normalisers."""
        rollout, after = normalizer.rollout(state, batch)
        value = policy.value(state.params, flatten_rows(rollout.obs)).reshape(rollout.obs.shape[:2])
        obs, action = flatten_rows(rollout.obs[:-1]), flatten_rows(rollout.action)
        mask = None if rollout.mask is None else flatten_rows(rollout.mask)
        log_prob = policy.log_prob(state.params, obs, action, mask)
        advantage = gae(
            rollout.reward, value[:-1], value[1:], rollout.terminated, rollout.done, settings.gamma, settings.gae_lambda
        )
        estimates = Estimates(advantage, value[:-1], advantage + value[:-1])
        numbers = jnp.stack([log_prob, *(flatten_rows(x) for x in (*estimates, rollout.weight))], axis=1)
        return Rows(obs, action, numbers, mask), estimates, after

    def update_noise(rng: np.random.Generator) -> np.ndarray:
        """A permutation of the rows for each epoch, cut into minibatches [G, B]."""
        order = np.tile(np.arange(config.rollout, dtype=np.int32), (config.n_epochs, 1))
        return rng.permuted(order, axis=1).reshape(config.n_epochs * n_minibatches, config.minibatch)

    def update(state: State, batch: Batch, hp: Hp, permutations: Array) -> tuple[State, Scalars, Estimates]:
        rows, estimates, after = prepare(state, batch)
        layout = Layout.of(state.params)
        rates = learning_rates(layout, hp)

        def minibatch_step(carry: tuple[Array, Any], index: Array) -> tuple[tuple[Array, Any], Scalars]:
            vector, optimizer = carry
            gradients, metrics = jax.grad(loss, has_aux=True)(
                layout.unflatten(vector), rows.minibatch(index), hp, settings
            )
            vector, optimizer, norms = descent.step(vector, optimizer, gradients, rates, layout)
            return (vector, optimizer), Scalars.of(metrics | gradient_metrics(norms))

        before = layout.flatten(state.params)
        start = (before, state.optimizer)
        if config.target_kl is None:
            (vector, optimizer), stacked = jax.lax.scan(minibatch_step, start, permutations)
            made = jnp.ones(len(permutations))
        else:  # as in Stable-Baselines3 and Spinning Up, 1.5 times the target ends the update
            steps = _until(1.5 * config.target_kl, minibatch_step)
            ((vector, optimizer), _), (stacked, made) = jax.lax.scan(steps, (start, jnp.array(True)), permutations)
        deviations = stacked["train/metrics/ratio_deviation"]
        once = {
            "train/metrics/ratio_deviation_first": deviations[0],
            "train/metrics/ratio_deviation_max": jnp.max(deviations * made),
            "train/metrics/epochs_done": jnp.mean(made),
            **change_metrics(before, vector),
            "train/metrics/dead_units": dead_units(policy.activations(state.params, rows.obs)),
        }
        if policy.is_gaussian:
            once["train/metrics/policy_std"] = jnp.mean(jnp.exp(state.params["actor_head"]["log_std"]))
        after = after._replace(params=layout.unflatten(vector), optimizer=optimizer)
        return after, stacked.mean(made) | Scalars.of(once), estimates

    def gradients(state: State, batch: Batch, hp: Hp, permutations: Array) -> dict[str, Array]:
        """The policy's part is the whole without the value loss; what that takes away is the value's."""
        rows, _, _ = prepare(state, batch)
        flatten = Layout.of(state.params).flatten

        def of(hp: Hp, index: Array) -> Array:
            return flatten(jax.grad(loss, has_aux=True)(state.params, rows.minibatch(index), hp, settings)[0])

        each = jax.vmap(of, in_axes=(None, 0))
        whole, of_policy = each(hp, permutations), each({**hp, "vf_coef": jnp.zeros(())}, permutations)
        return {"policy": of_policy, "value": whole - of_policy}

    def actor(state: State) -> Actor:
        return Actor(policy.acting_part(state.params), state.obs_statistics)

    def act(actor: Actor, carry: Carry, obs: Array, noise: Array, mask: Array | None) -> tuple[Array, Carry, Extras]:
        return policy.sample(actor.params, normalizer.obs(actor, obs), noise, mask), carry, {}

    def greedy(actor: Actor, carry: Carry, obs: Array, mask: Array | None) -> tuple[Array, Carry]:
        return policy.mode(actor.params, normalizer.obs(actor, obs), mask), carry

    scheduled = ["policy_lr", "clip_range", "vf_coef", "ent_coef"]
    scheduled += [name for name in ("value_lr", "clip_range_vf") if getattr(config, name) is not None]
    return Algorithm(
        init=init,
        actor=actor,
        act=act,
        greedy=greedy,
        value=lambda state, obs: policy.value(state.params, normalizer.obs(state, obs)),
        acting_noise=lambda rng, shape, _: policy.draw_noise(rng, shape),
        update_noise=update_noise,
        update=update,
        gradients=gradients,
        scheduled=tuple(scheduled),
        gradient_steps=config.n_epochs * n_minibatches,
        forget_episodes=normalizer.forget_episodes,
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
