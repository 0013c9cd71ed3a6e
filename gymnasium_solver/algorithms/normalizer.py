"""Normalised observations and rewards. Statistics change only between updates, and are frozen in evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Spaces, State
from gymnasium_solver.config.schema import NetworkConfig
from gymnasium_solver.ops import running_statistics


class Normalizer(NamedTuple):
    """Running statistics of observations and returns, as parts of an algorithm's state."""

    initial: Callable[[], State]
    obs: Callable[[State, Array], Array]
    reward: Callable[[State, Array], Array]
    observe: Callable[[State, dict[str, Array]], State]  # a rollout [T, N] counts from here on
    minibatches: Callable[[State, dict[str, Array]], dict[str, Array]]  # of a replay, which holds raw numbers
    forget_episodes: Callable[[State], State]


def make_normalizer(config: NetworkConfig, spaces: Spaces) -> Normalizer:
    normalize_obs = config.normalize_obs and not spaces.is_image

    def initial() -> State:
        state: State = {}
        if normalize_obs:
            state["obs_statistics"] = running_statistics.initial(spaces.obs_shape)
        if config.normalize_reward:
            state["return_statistics"] = running_statistics.initial(())
            state["return_carry"] = np.zeros(config.n_envs, np.float32)
        return state

    def obs(holder: State, x: Array) -> Array:
        return running_statistics.normalize(holder["obs_statistics"], x, config.clip_obs) if normalize_obs else x

    def reward(holder: State, x: Array) -> Array:
        if not config.normalize_reward:
            return x
        scaled = x / jnp.sqrt(holder["return_statistics"]["var"] + 1e-8)
        return jnp.clip(scaled, -config.clip_reward, config.clip_reward)

    def observe(state: State, batch: dict[str, Array]) -> State:
        after, weight = dict(state), batch["valid"].astype(jnp.float32)
        if normalize_obs:
            after["obs_statistics"] = running_statistics.absorb(state["obs_statistics"], batch["obs"][:-1], weight)
        if config.normalize_reward:
            done = (batch["terminated"] | batch["truncated"]).astype(jnp.float32)
            carry, sums = running_statistics.discounted_sums(state["return_carry"], batch["reward"], done, config.gamma)
            after["return_statistics"] = running_statistics.absorb(state["return_statistics"], sums, weight)
            after["return_carry"] = carry
        return after

    def minibatches(state: State, batch: dict[str, Array]) -> dict[str, Array]:
        rows = {name: x for name, x in batch.items() if name != "rewards"}
        rows |= {name: obs(state, batch[name]) for name in ("obs", "next_obs")}
        if config.normalize_reward:  # each is bounded before they are summed: n of them are worth up to n bounds
            each = reward(state, batch.get("rewards", batch["reward"][..., None]))
            rows["reward"] = jnp.sum(each * config.gamma ** jnp.arange(each.shape[-1], dtype=jnp.float32), axis=-1)
        return rows

    def forget_episodes(state: State) -> State:
        return state | {"return_carry": np.zeros(config.n_envs, np.float32)} if config.normalize_reward else state

    return Normalizer(initial, obs, reward, observe, minibatches, forget_episodes)
