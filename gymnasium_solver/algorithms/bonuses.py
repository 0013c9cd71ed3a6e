"""Rewards for the unfamiliar, for any algorithm that trains online: visit counts (https://arxiv.org/abs/1611.04717),
random network distillation (https://arxiv.org/abs/1810.12894), curiosity (ICM, https://arxiv.org/abs/1705.05363).

A bonus looks at where a step led, learns from it, and says how new it was. The two learned ones are divided by the
running deviation of their own size, so that `bonus_coef` means the same in every environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Spaces, State
from gymnasium_solver.config.schema import Config
from gymnasium_solver.networks.layers import dense, dense_init
from gymnasium_solver.networks.trunk import Trunk, make_trunk
from gymnasium_solver.ops import distributions, masked, running_statistics
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.optimizers import descent_direction, initial_state, make_optimizer
from gymnasium_solver.ops.scalars import Scalars

_FEATURES = 64
_CELLS = 8.0  # of the count grid, for each standard deviation of an observation's component
_MOST_GRID_DIMS = 12  # a grid over more would meet nothing twice; they are projected first
_INVERSE_SHARE = 0.8  # of ICM's loss: features should hold what actions change


class Bonus(NamedTuple):
    init: Callable[[np.random.Generator], State]
    # state, rows (obs [T+1, N, …], action, terminated, truncated, valid), values in force → state, bonus [T, N]
    update: Callable[[State, dict[str, Array], dict[str, Array]], tuple[State, Array, Scalars]]


def make_bonus(config: Config, spaces: Spaces) -> Bonus:
    return {"count": _count, "rnd": _rnd, "icm": _icm}[config.bonus](config, spaces)


def _numbers(bonus: Array, weight: Array, **more: Array) -> Scalars:
    named = {"train/metrics/bonus_mean": masked.mean(bonus, weight), "train/metrics/bonus_max": jnp.max(bonus)}
    return Scalars.of(named | {f"train/metrics/bonus_{name}": value for name, value in more.items()})


def _count(config: Config, spaces: Spaces) -> Bonus:
    """1 / √n for the n-th visit to a cell of a grid over normalised observations, cells hashed into a table."""
    size, n_cells = int(np.prod(spaces.obs_shape)), 2**config.bonus_bits
    # One-hot components, and few others, need no projection.
    projects = not spaces.obs_sizes and size > _MOST_GRID_DIMS

    def init(rng: np.random.Generator) -> State:
        state: State = {"counts": np.zeros(n_cells, np.float32), "statistics": running_statistics.initial((size,))}
        if projects:
            projection = rng.standard_normal((size, _MOST_GRID_DIMS)) / np.sqrt(size)
            state["projection"] = projection.astype(np.float32)
        factors = rng.integers(1, 2**31, _MOST_GRID_DIMS if projects else size, dtype=np.int64) | 1
        return state | {"factors": factors.astype(np.uint32)}

    def cell(state: State, obs: Array) -> Array:
        flat = obs.reshape(*obs.shape[:2], -1).astype(jnp.float32)
        if not spaces.obs_sizes:
            flat = running_statistics.normalize(state["statistics"], flat, 10.0)
        flat = flat @ state["projection"] if projects else flat
        grid = jnp.floor(flat * _CELLS).astype(jnp.int32).astype(jnp.uint32)
        return jnp.sum(grid * state["factors"], axis=-1, dtype=jnp.uint32) >> (32 - config.bonus_bits)

    def update(state: State, rows: dict[str, Array], hp: dict[str, Array]) -> tuple[State, Array, Scalars]:
        weight = rows["valid"].astype(jnp.float32)
        reached = rows["obs"][1:]
        flat = reached.reshape(*reached.shape[:2], -1).astype(jnp.float32)
        state = state | {"statistics": running_statistics.absorb(state["statistics"], flat, weight)}
        where = cell(state, reached)
        counts = state["counts"].at[where.ravel()].add(weight.ravel())
        bonus = weight / jnp.sqrt(jnp.maximum(counts[where], 1.0))
        visited = jnp.mean((counts > 0).astype(jnp.float32))
        return state | {"counts": counts}, bonus, _numbers(bonus, weight, visited_share=visited)

    return Bonus(init, update)


def _trunk(spaces: Spaces) -> Trunk:
    return make_trunk(
        obs_shape=spaces.obs_shape,
        is_image=spaces.is_image,
        hidden_dims=(_FEATURES, _FEATURES),
        activation="relu",
        orthogonal=True,
        dtype=jnp.float32,
    )


def _learned(
    spaces: Spaces,
    init_params: Callable[[np.random.Generator], Any],
    fixed: Callable[[np.random.Generator], Any],
    loss: Callable[[Any, Any, Array, Array, Array, Array], tuple[Array, Array]],
) -> Bonus:
    """`loss(params, fixed, obs, next_obs, action, weight)` of flat rows: what to minimise, and how new each row is."""
    optimizer = make_optimizer("adam", eps=1e-8, weight_decay=0.0)

    def init(rng: np.random.Generator) -> State:
        params = init_params(rng)
        return {
            "params": params,
            "fixed": fixed(rng),
            "optimizer": initial_state("adam", optimizer, params),
            "statistics": running_statistics.initial(spaces.obs_shape),
            "novelty": running_statistics.initial(()),
        }

    def update(state: State, rows: dict[str, Array], hp: dict[str, Array]) -> tuple[State, Array, Scalars]:
        weight = rows["valid"].astype(jnp.float32)
        obs = rows["obs"]
        if not spaces.is_image:
            state = state | {"statistics": running_statistics.absorb(state["statistics"], obs[1:], weight)}
            obs = running_statistics.normalize(state["statistics"], obs, 5.0)
        before, after = (x.reshape((-1, *spaces.obs_shape)) for x in (obs[:-1], obs[1:]))
        action = rows["action"].reshape((-1, *rows["action"].shape[2:]))
        layout = Layout.of(state["params"])
        (total, novelty), gradients = jax.value_and_grad(loss, has_aux=True)(
            state["params"], state["fixed"], before, after, action, weight.ravel()
        )
        vector = layout.flatten(state["params"])
        step, optimizer_state = descent_direction(
            "adam", optimizer, layout.flatten(gradients), state["optimizer"], vector, layout
        )
        novelty = novelty.reshape(weight.shape)
        sizes = running_statistics.absorb(state["novelty"], novelty, weight)
        bonus = weight * novelty / jnp.sqrt(sizes["var"] + jnp.square(sizes["mean"]) + 1e-8)
        state = state | {
            "params": layout.unflatten(vector - hp["bonus_lr"] * step),
            "optimizer": optimizer_state,
            "novelty": sizes,
        }
        return state, bonus, _numbers(bonus, weight, loss=total)

    return Bonus(init, update)


def _rnd(config: Config, spaces: Spaces) -> Bonus:
    """How badly a network predicts the features that a fixed random one gives to where the step led."""
    trunk = _trunk(spaces)

    def network_init(rng: np.random.Generator) -> Any:
        return {"trunk": trunk.init(rng), "head": dense_init(rng, trunk.width, _FEATURES, 1.0)}

    def features(params: Any, obs: Array) -> Array:
        return dense(params["head"], trunk.hidden(params["trunk"], obs, None)[-1])

    def loss(params: Any, fixed: Any, obs: Array, next_obs: Array, action: Array, weight: Array) -> tuple[Array, Array]:
        error = jnp.mean(jnp.square(features(params, next_obs) - features(fixed, next_obs)), axis=-1)
        return masked.mean(error, weight), error

    return _learned(spaces, network_init, network_init, loss)


def _icm(config: Config, spaces: Spaces) -> Bonus:
    """How badly the features of where the step led are predicted from where it began and the action; the features are
    those that predict the action."""
    trunk, space = _trunk(spaces), spaces.action
    n_inputs = space.dim if space.kind == "box" else sum(space.sizes)
    distribution = distributions.for_actions(space.kind, space.sizes, space.dim)

    def as_input(action: Array) -> Array:
        if space.kind == "box":
            return action
        columns = action.reshape(action.shape[0], -1)
        hot = [jax.nn.one_hot(columns[:, i], size) for i, size in enumerate(space.sizes)]
        return jnp.concatenate(hot, axis=-1)

    def init_params(rng: np.random.Generator) -> Any:
        return {
            "trunk": trunk.init(rng),
            "forward": [
                dense_init(rng, trunk.width + n_inputs, _FEATURES, 2**0.5),
                dense_init(rng, _FEATURES, trunk.width, 1.0),
            ],
            "inverse": [
                dense_init(rng, 2 * trunk.width, _FEATURES, 2**0.5),
                dense_init(rng, _FEATURES, n_inputs, 1.0),
            ],
        }

    def two_layers(layers: Any, x: Array) -> Array:
        return dense(layers[1], jax.nn.relu(dense(layers[0], x)))

    def loss(params: Any, fixed: Any, obs: Array, next_obs: Array, action: Array, weight: Array) -> tuple[Array, Array]:
        here, there = (trunk.hidden(params["trunk"], x, None)[-1] for x in (obs, next_obs))
        guess = two_layers(params["inverse"], jnp.concatenate([here, there], axis=-1))
        if space.kind == "box":
            inverse = jnp.mean(jnp.square(guess - action), axis=-1)
        else:
            inverse = -distribution.log_prob(guess, action)
        # The forward model predicts features as they are; they are shaped by the inverse model alone.
        start, end = jax.lax.stop_gradient(here), jax.lax.stop_gradient(there)
        foretold = two_layers(params["forward"], jnp.concatenate([start, as_input(action)], axis=-1))
        error = jnp.mean(jnp.square(foretold - end), axis=-1)
        total = _INVERSE_SHARE * masked.mean(inverse, weight) + (1 - _INVERSE_SHARE) * masked.mean(error, weight)
        return total, error

    return _learned(spaces, init_params, lambda rng: {}, loss)
