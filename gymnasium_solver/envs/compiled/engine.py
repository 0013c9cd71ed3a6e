"""The compiled engine: N pure environments side by side, as functions of their state, to be run inside a compiled loop.

Autoreset is on the next step, as in every engine (`envs/engine.py`): the step after an ending ignores the action and
returns the first observation of a new episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import named
from gymnasium_solver.envs.compiled import host, protocol
from gymnasium_solver.envs.compiled.choice import VERIFIED
from gymnasium_solver.envs.compiled.protocol import PureEnvironment
from gymnasium_solver.envs.compiled.spaces import action_decoder, observation_encoder
from gymnasium_solver.envs.spec import EnvSpec


class Environments(NamedTuple):
    """Where N environments stand."""

    state: Any  # the environment's own, [N, …]
    obs: Any  # as the policy sees it, [N, …]
    steps: Any  # of the episode so far, int32 [N]
    ended: Any  # bool [N]: the next step only resets


@dataclass(frozen=True)
class CompiledEngine:
    environment: PureEnvironment  # checked to be pure
    spec: EnvSpec
    n_envs: int
    rescale_actions: bool

    def draw_keys(self, rng: np.random.Generator, steps: tuple[int, ...] = ()) -> np.ndarray:
        """For so many steps of all environments."""
        return protocol.draw_keys(rng, (*steps, self.n_envs))

    def begin(self) -> Environments:
        """As after an ending everywhere: the first step resets. So nothing has to be compiled for it."""
        blank: Environments = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), jax.eval_shape(self._shapes))
        return blank._replace(ended=np.ones(self.n_envs, bool))

    def _shapes(self) -> Environments:
        count = jnp.zeros(self.n_envs, jnp.int32)
        return Environments(*self._fresh(jnp.zeros((self.n_envs, protocol.KEYS, 2), jnp.uint32)), count, count > 0)

    def step(self, environments: Environments, action: Array, keys: Array) -> tuple[Environments, dict[str, Array]]:
        """Also reward, terminated, truncated and valid, [N] each."""
        resets = environments.ended
        begun = self._fresh(keys)
        one = partial(protocol.step, self.environment)
        stepped = jax.vmap(one)(environments.state, self._decode(action), keys)
        state, obs = jax.tree.map(
            partial(by_environment, resets), begun, (stepped.state, self._encode(stepped.observation))
        )
        steps = jnp.where(resets, 0, environments.steps + 1)
        limit = self.spec.max_episode_steps
        truncated = jnp.zeros_like(resets) if limit is None else steps >= limit
        terminated = stepped.terminated & ~resets
        columns = {
            "reward": jnp.where(resets, 0.0, stepped.reward),
            "terminated": terminated,
            "truncated": truncated,
            "valid": ~resets,
        }
        return Environments(state, obs, steps, terminated | truncated), columns

    def _fresh(self, keys: Array) -> tuple[Any, Array]:
        state, observation = jax.vmap(partial(protocol.begin, self.environment))(keys)
        return state, self._encode(observation)

    @cached_property
    def _encode(self) -> Any:
        return observation_encoder(self.environment.observation_space)

    @cached_property
    def _decode(self) -> Any:
        return action_decoder(self.environment.action_space, self.rescale_actions)

    def close(self) -> None:
        """Nothing is open: the state of the environments belongs to the program that steps them."""


def compiled_engine(config: Config, spec: EnvSpec, n_envs: int) -> CompiledEngine:
    own = VERIFIED.get(config.env_id)
    if own is not None:  # tests show that these are pure; the check would hold up every start
        environment: PureEnvironment = named.environment(own)()
    else:
        environment = host.shared(named.environment(config.env_id), config.env_kwargs, config.env_id).environment
    return CompiledEngine(environment, spec, n_envs, config.rescale_actions)


def by_environment(mask: Array, yes: Array, no: Array) -> Array:
    """Values [N, …] by a mask [N]."""
    return jnp.where(mask.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)
