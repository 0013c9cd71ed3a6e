"""What can be trained: `list_environments list_variants get_config`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from gymnasium_solver import api
from gymnasium_solver.api.configs import algorithms, as_document, listing
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.mcp.answers import LINE, Answer, shown_of
from gymnasium_solver.mcp.arguments import ConfigId, EnvFilter, Limit, Overrides
from gymnasium_solver.mcp.place import Place
from gymnasium_solver.mcp.toolbox import Toolbox


class Environments(Answer):
    total: int
    environments: dict[str, list[str]] = Field(description="env_id → variants that have a tuned configuration.")
    unreadable: list[str] = Field(description="What is wrong with configuration files that cannot be read.")


class Variant(BaseModel):
    config_id: str
    algo_id: str
    file: str = Field(description="The YAML file it comes from; yours in config/environments come first.")


class Variants(Answer):
    env_id: str
    variants: list[Variant]
    others: list[str] = Field(description="Algorithms that train here too, from defaults: ENV:ALGORITHM.")


class Configuration(Answer):
    config_id: str
    config: dict[str, Any] = Field(description="Every field with its value, as it would be trained.")
    yaml: str


def register(tools: Toolbox, place: Place) -> None:
    @tools.reads
    def list_environments(env_filter: EnvFilter = "", limit: Limit = 50) -> Environments:
        """Environments that have tuned configurations, shipped or in ./config/environments. Use it to find what can be
        trained; any other Gymnasium id trains from defaults. Next: list_variants or get_config."""
        found: dict[str, list[str]] = {}
        entries, problems = listing(env_filter)
        for env_id, variant, _ in entries:
            found.setdefault(env_id, []).append(variant)
        if not found and env_filter:
            raise NotFoundError(
                f"no configuration contains {env_filter!r}; call list_environments without env_filter, or get_config "
                "with ENV:ALGORITHM for an environment without a file"
            )
        shown = dict(list(found.items())[:limit])
        more = shown_of(limit, len(found), "environments", "narrow env_filter")
        unreadable = [problem[:LINE] for problem in problems.values()][:limit]
        return Environments(total=len(found), environments=shown, unreadable=unreadable, truncated=more)

    @tools.reads
    def list_variants(
        env_id: Annotated[str, Field(description="Environment id, e.g. CartPole-v1.")],
    ) -> Variants:
        """Configurations of one environment, e.g. CartPole-v1:ppo, and the algorithms that train it from defaults.
        Next: get_config for the values, start_training to train one."""
        found = [entry for entry in api.envs(env_id) if entry[0] == env_id]
        variants = [
            Variant(config_id=f"{env}:{name}", algo_id=place.config(f"{env}:{name}").algo_id, file=str(file))
            for env, name, file in found
        ]
        if not found:
            place.config(f"{env_id}:ppo")  # says which environments are near
        known = {variant.algo_id for variant in variants}
        return Variants(env_id=env_id, variants=variants, others=[name for name in algorithms() if name not in known])

    @tools.reads
    def get_config(config_id: ConfigId, overrides: Overrides = None) -> Configuration:
        """A configuration fully resolved, with overrides applied and checked; nothing is started. Use it to look at the
        values before a training, and to check that a change is valid. Next: start_training."""
        return Configuration(config_id=config_id, **as_document(place.config(config_id, overrides)))
