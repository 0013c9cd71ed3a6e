"""What to begin with on an environment: the shipped configurations, or defaults from its spaces and its horizon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium_solver.config.cards import Card, Look, all_cards, default_algorithm
from gymnasium_solver.config.load import build_config, load_config, shipped, to_dict
from gymnasium_solver.diagnose.readings import baselines
from gymnasium_solver.envs import describe
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import SolverError

EPISODES = 400  # of full length, as a first budget
LEAST_STEPS, MOST_STEPS = 200_000, 2_000_000
EVALUATION_EPISODES = 50  # what passes here should pass on fresh seeds too


@dataclass(frozen=True)
class Beginning:
    """A configuration to begin with, and where it is from."""

    label: str
    fields: Mapping[str, Any]
    why: str


def task(env_id: str, overrides: Mapping[str, Any], target: float | None) -> tuple[EnvSpec, dict[str, Any]]:
    """The environment as a policy sees it, and the fields that say what the task is; raises if it cannot be made."""
    fields: dict[str, Any] = {"env_id": env_id, **overrides}
    if target is not None:
        fields["reward_threshold"] = target
    spec = describe(build_config({"algo_id": default_algorithm(), **fields}, env_id))
    if target is None and spec.reward_threshold is None:
        known = baselines().get(env_id, {}).get("threshold")
        if known is not None:
            fields["reward_threshold"] = known
    return spec, fields


def beginnings(spec: EnvSpec, fields: Mapping[str, Any], *, use_shipped: bool) -> list[Beginning]:
    """Likeliest first."""
    made = _shipped(fields) if use_shipped else []
    return made + _defaults(spec, fields)


def _shipped(fields: Mapping[str, Any]) -> list[Beginning]:
    """Those that were measured to get there soonest first."""
    env_id = str(fields["env_id"])
    steps = baselines().get(env_id, {}).get("steps_to_threshold", {})
    found = []
    for env, variant, _ in shipped():
        if env == env_id:
            config = to_dict(load_config(f"{env_id}:{variant}", dict(fields)))
            found.append(Beginning(f"{env_id}:{variant}", config, "shipped for this environment"))
    return sorted(found, key=lambda one: steps.get(one.fields["algo_id"], float("inf")))


def _defaults(spec: EnvSpec, fields: Mapping[str, Any]) -> list[Beginning]:
    limit = spec.max_episode_steps
    budget = min(max(EPISODES * (limit or 0), LEAST_STEPS), MOST_STEPS)
    look = Look(spec.is_image, spec.action.kind == "box", limit)
    found = []
    for card in _algorithms(spec):
        algo, chosen = card.algo_id, card.defaults(look)
        usual = {"max_env_steps": budget, "eval_episodes": EVALUATION_EPISODES}
        try:
            config = build_config({"algo_id": algo, **chosen, **usual, **fields}, f"{spec.env_id}:{algo}")
        except SolverError:
            continue
        found.append(Beginning(f"{algo}, defaults", to_dict(config), _reason(spec)))
    return found


def _algorithms(spec: EnvSpec) -> Sequence[Card]:
    kind = "table" if spec.obs_sizes and spec.action.kind == "discrete" else spec.action.kind
    return sorted((card for card in all_cards() if kind in card.tried), key=lambda card: card.tried[kind])


def _reason(spec: EnvSpec) -> str:
    seen = "images" if spec.is_image else "discrete observations" if spec.obs_sizes else "vector observations"
    horizon = f"episodes of at most {spec.max_episode_steps} steps" if spec.max_episode_steps else "no time limit"
    return f"defaults for {seen}, {spec.action.kind} actions, {horizon}"
