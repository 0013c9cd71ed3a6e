"""Normalised observations and rewards. Statistics change only between updates, and are frozen in evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.ops import running_statistics

Columns = Mapping[str, Array]


class Rollout(NamedTuple):
    """Fresh experience with normalised observations and rewards; [T, N] unless said otherwise."""

    obs: Array  # [T+1, N, …]
    action: Array
    reward: Array
    terminated: Array
    done: Array
    weight: Array  # 1: real transition, 0: reset step
    mask: Array | None  # [T, N, A]


class Normalizer(NamedTuple):
    """Running statistics in three fields of an algorithm's state: `obs_statistics`, `return_statistics` and
    `return_carry`, None where they are not asked for. `obs` also takes an actor."""

    initial: Callable[[], dict[str, Any]]
    obs: Callable[[Any, Array], Array]
    observe: Callable[[Any, Columns], Any]  # state, rollout [T, N] → the state whose statistics count it
    rollout: Callable[[Any, Columns], tuple[Rollout, Any]]
    minibatches: Callable[[Any, Columns], dict[str, Array]]  # of a replay, which holds raw numbers
    forget_episodes: Callable[[Any], Any]


def normalizer_for(config: Any, spaces: Any) -> Normalizer:
    """As the fields of a config say."""
    normalize_obs = config.normalize_obs and not spaces.is_image

    def initial() -> dict[str, Any]:
        rewards = config.normalize_reward
        return {
            "obs_statistics": running_statistics.initial(spaces.obs_shape) if normalize_obs else None,
            "return_statistics": running_statistics.initial(()) if rewards else None,
            "return_carry": np.zeros(config.n_envs, np.float32) if rewards else None,
        }

    def obs(holder: Any, x: Array) -> Array:
        return running_statistics.normalize(holder.obs_statistics, x, config.clip_obs) if normalize_obs else x

    def reward(state: Any, x: Array) -> Array:
        if not config.normalize_reward:
            return x
        scaled = x / jnp.sqrt(state.return_statistics["var"] + 1e-8)
        return jnp.clip(scaled, -config.clip_reward, config.clip_reward)

    def observe(state: Any, batch: Columns) -> Any:
        weight = batch["valid"].astype(jnp.float32)
        if normalize_obs:
            counted = running_statistics.absorb(state.obs_statistics, batch["obs"][:-1], weight)
            state = state._replace(obs_statistics=counted)
        if config.normalize_reward:
            done = (batch["terminated"] | batch["truncated"]).astype(jnp.float32)
            carry, sums = running_statistics.discounted_sums(state.return_carry, batch["reward"], done, config.gamma)
            counted = running_statistics.absorb(state.return_statistics, sums, weight)
            state = state._replace(return_statistics=counted, return_carry=carry)
        return state

    def rollout(state: Any, batch: Columns) -> tuple[Rollout, Any]:
        """Observations are normalised by the statistics that acted, and count from the next rollout on; rewards by
        statistics that know them already."""
        terminated = batch["terminated"].astype(jnp.float32)
        done = jnp.maximum(terminated, batch["truncated"].astype(jnp.float32))
        weight = batch["valid"].astype(jnp.float32)
        after = observe(state, batch)
        scaled = reward(after, batch["reward"])
        mask = batch.get("action_mask")
        return Rollout(obs(state, batch["obs"]), batch["action"], scaled, terminated, done, weight, mask), after

    def minibatches(state: Any, batch: Columns) -> dict[str, Array]:
        rows = {name: x for name, x in batch.items() if name != "rewards"}
        rows |= {name: obs(state, batch[name]) for name in ("obs", "next_obs")}
        if config.normalize_reward:  # each is bounded before they are summed: n of them may reach n bounds
            each = reward(state, batch.get("rewards", batch["reward"][..., None]))
            rows["reward"] = jnp.sum(each * config.gamma ** jnp.arange(each.shape[-1], dtype=jnp.float32), axis=-1)
        return rows

    def forget_episodes(state: Any) -> Any:
        return state._replace(return_carry=initial()["return_carry"]) if config.normalize_reward else state

    return Normalizer(initial, obs, observe, rollout, minibatches, forget_episodes)


def flatten_rows(x: Array) -> Array:
    """[T, N, …] → [T·N, …]"""
    return x.reshape((-1, *x.shape[2:]))
