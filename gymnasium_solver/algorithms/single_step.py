"""The update that A2C and REINFORCE share: one gradient step on the whole of each fresh rollout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Spaces, State, Worth
from gymnasium_solver.algorithms.policy_gradient import Numbers, Rollout, entropy_metrics, flatten_rows, make_parts
from gymnasium_solver.config.schema import A2CConfig, ReinforceConfig
from gymnasium_solver.ops import losses, masked
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.scalars import Scalars


def make_single_step(
    config: A2CConfig | ReinforceConfig,
    spaces: Spaces,
    weigh: Callable[[Rollout, Array], tuple[Worth, Array]],
    *,
    learns_value: bool = True,
) -> Algorithm:
    """`weigh` takes a rollout and the values of its observations [T+1, N]; it says what the rows are worth, and which
    of them count (weights [T, N])."""
    parts = make_parts(config, spaces)
    distribution, network = parts.distribution, parts.network

    def update(state: State, batch: dict[str, Array], hp: dict[str, Array], _: Array) -> tuple[State, Scalars, Worth]:
        rollout, after = parts.prepare(state, batch)
        value = network.value(state["params"], flatten_rows(rollout.obs)).reshape(rollout.obs.shape[:2])
        worth, counts = weigh(rollout, value)
        obs, action = flatten_rows(rollout.obs[:-1]), flatten_rows(rollout.action)
        mask = None if rollout.mask is None else flatten_rows(rollout.mask)
        advantage, target, weight = (flatten_rows(column) for column in (worth.advantage, worth.target, counts))
        if config.normalize_advantages:
            advantage = masked.standardize(advantage, weight)

        def loss(params: Any) -> tuple[Array, tuple[Numbers, Array]]:
            output, predicted = network.both(params, obs)
            output = mask_logits(output, mask)
            log_prob = distribution.log_prob(output, action)
            policy_loss = losses.policy_gradient(log_prob, advantage, weight)
            value_loss = losses.value_error(predicted, target, weight)
            entropy = masked.mean(distribution.entropy(output), weight)
            total = policy_loss - hp["ent_coef"] * entropy + (hp["vf_coef"] * value_loss if learns_value else 0.0)
            metrics = {"train/loss/policy": policy_loss, "train/loss/value": value_loss, "train/loss/total": total}
            return total, (metrics | entropy_metrics(entropy, distribution.max_entropy), log_prob)

        params, layout = state["params"], Layout.of(state["params"])
        gradients, (metrics, old_log_prob) = jax.grad(loss, has_aux=True)(params)
        before = layout.flatten(params)
        vector, optimizer_state, norms = parts.gradient_step(
            before, state["optimizer"], gradients, parts.learning_rates(layout, hp), layout
        )
        after |= {"params": layout.unflatten(vector), "optimizer": optimizer_state}
        log_ratio = distribution.log_prob(parts.policy(after["params"], obs, mask), action) - old_log_prob
        metrics |= norms | {"train/metrics/kl_divergence": losses.kl_estimate(log_ratio, weight)}
        return after, Scalars.of(metrics | parts.report(before, vector, params, obs)), worth

    return Algorithm(
        init=parts.init,
        actor=parts.actor,
        act=parts.act,
        act_greedy=parts.act_greedy,
        value=parts.value,
        forget_episodes=parts.forget_episodes,
        draw_noise=parts.draw_noise,
        draw_shuffle=lambda rng: np.zeros(0, np.int32),
        update=update,
        scheduled=("policy_lr", "vf_coef", "ent_coef") + (("value_lr",) if config.value_lr is not None else ()),
        gradient_steps=1,
    )
