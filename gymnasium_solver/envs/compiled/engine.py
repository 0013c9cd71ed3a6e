"""The compiled engine: a pure environment and how many of them, for the program that steps them and learns."""

from __future__ import annotations

from dataclasses import dataclass

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.compiled import host
from gymnasium_solver.envs.compiled.choice import VERIFIED
from gymnasium_solver.envs.compiled.protocol import PureEnvironment
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.envs.user_code import import_attribute


@dataclass(frozen=True)
class CompiledEngine:
    environment: PureEnvironment  # checked to be pure
    spec: EnvSpec
    n_envs: int
    max_episode_steps: int | None

    def close(self) -> None:
        """Nothing is open: the state of the environments belongs to the program that steps them."""


def compiled_engine(config: Config, spec: EnvSpec, n_envs: int) -> CompiledEngine:
    own = VERIFIED.get(config.env_id)
    if own is not None:  # tests show that these are pure; the check would hold up every start
        environment: PureEnvironment = import_attribute(own, "env_id")()
    else:
        environment = host.shared(
            import_attribute(config.env_id, "env_id"), config.env_kwargs, config.env_id
        ).environment
    return CompiledEngine(environment, spec, n_envs, spec.max_episode_steps)
