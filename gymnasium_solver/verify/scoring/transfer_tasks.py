"""Tasks that resemble the one a policy was trained on: what `gsolve score` tries it on, unless told otherwise.

A task is the same environment with other physics, by arguments of its constructor or by attributes that its code reads
at every step. Changes are of ten to fifty percent: the policy has to cope, not to learn anew.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import yaml

from gymnasium_solver import trust
from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.config.yaml_text import parse_yaml
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import ConfigError

HALF_POLE, POLE_MASS = 0.5, 0.1  # of CartPole
STANDARD_GRAVITY = 9.81


@dataclass(frozen=True)
class Task:
    name: str
    env_id: str
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of gymnasium.make
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of the environment below all wrappers; dots go deeper


class Changed(gym.Wrapper):
    """The environment with some of its attributes set."""

    def __init__(self, env: gym.Env, attributes: Mapping[str, Any]) -> None:
        super().__init__(env)
        for name, value in attributes.items():
            *path, last = name.split(".")
            holder: Any = env.unwrapped
            for step in path:
                holder = getattr(holder, step)
            setattr(holder, last, value)


class SuccessAsReward(gym.Wrapper):
    """Pays 1 at the end of an episode that the environment itself calls a success (`is_success` of its info)."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, info = self.env.step(action)
        ended = terminated or truncated
        return obs, float(bool(info.get("is_success"))) if ended else 0.0, terminated, truncated, info


_LANDERS = ("LunarLander-v3", "LunarLanderContinuous-v3")
_WALKERS = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5")
_ARGUMENTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "Pendulum-v1": {"gravity up by 20 percent": {"g": 12.0}, "gravity down by 20 percent": {"g": 8.0}},
    "FrozenLake-v1": {
        "a step succeeds half of the time": {"is_slippery": True, "success_rate": 0.5},
        "a step succeeds nine times in ten": {"is_slippery": True, "success_rate": 0.9},
    },
    "CliffWalking-v1": {"slippery": {"is_slippery": True}},
    "Taxi-v3": {"rain": {"is_rainy": True}, "a passenger who changes plans": {"fickle_passenger": True}},
    **{
        lander: {"gravity down by 20 percent": {"gravity": -8.0}, "wind": {"enable_wind": True, "wind_power": 10.0}}
        for lander in _LANDERS
    },
}
_ATTRIBUTES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "CartPole-v1": {
        "pole longer by 50 percent": {"length": 1.5 * HALF_POLE, "polemass_length": 1.5 * HALF_POLE * POLE_MASS},
        "gravity up by 20 percent": {"gravity": 1.2 * 9.8},
        "force down by 20 percent": {"force_mag": 8.0},
    },
    "Acrobot-v1": {
        "upper link heavier by 20 percent": {"LINK_MASS_1": 1.2},
        "lower link heavier by 20 percent": {"LINK_MASS_2": 1.2},
    },
    "MountainCar-v0": {
        "gravity up by 10 percent": {"gravity": 0.00275},
        "force down by 10 percent": {"force": 0.0009},
    },
    "MountainCarContinuous-v0": {"power down by 10 percent": {"power": 0.00135}},
    "Pendulum-v1": {"mass up by 20 percent": {"m": 1.2}},
    **{
        walker: {
            "gravity up by 10 percent": {"model.opt.gravity": [0.0, 0.0, -1.1 * STANDARD_GRAVITY]},
            "gravity down by 10 percent": {"model.opt.gravity": [0.0, 0.0, -0.9 * STANDARD_GRAVITY]},
        }
        for walker in _WALKERS
    },
}
_PLAYED_ON = {"Taxi-v3": "Taxi-v4"}  # which takes those arguments


def _tasks(env_id: str) -> list[Task]:
    there = _PLAYED_ON.get(env_id, env_id)
    return [
        *(Task(name, there, arguments=found) for name, found in _ARGUMENTS.get(env_id, {}).items()),
        *(Task(name, there, attributes=found) for name, found in _ATTRIBUTES.get(env_id, {}).items()),
    ]


TASKS: Mapping[str, list[Task]] = {env_id: _tasks(env_id) for env_id in (*_ATTRIBUTES, *_ARGUMENTS)}


def parse_task(text: str, trained: Config) -> Task:
    """`ENV` or `ENV:name=value,name=value`; a name is an argument of gymnasium.make, or else an attribute."""
    env_id, _, settings = text.rpartition(":") if "=" in text.rpartition(":")[2] else (text, "", "")
    values: dict[str, Any] = {}
    for setting in filter(None, settings.split(",")):
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--transfer {text}: {setting!r} is not name=value, as in CartPole-v1:gravity=12")
        try:
            values[name.strip()] = parse_yaml(value)
        except yaml.YAMLError:
            raise ConfigError(f"--transfer {text}: {value!r} is not a YAML value; quote it") from None
    trust.allow(trust.names_in({"env_id": env_id}))  # whoever asks for a score names the tasks
    plain = Task(text, env_id)
    env = build_env(config_of(plain, trained))
    try:
        accepted = inspect.signature(type(env.unwrapped).__init__).parameters
        arguments = {name: value for name, value in values.items() if name in accepted}
        attributes = {name: value for name, value in values.items() if name not in accepted}
        for name in attributes:
            _require_attribute(text, env.unwrapped, name)
    finally:
        env.close()
    return Task(text, env_id, arguments, attributes)


def _require_attribute(text: str, env: Any, name: str) -> None:
    holder = env
    for step in name.split("."):
        if not hasattr(holder, step):
            accepted = list(inspect.signature(type(env).__init__).parameters)[1:]
            known = [key for key in (*vars(holder), *accepted) if not key.startswith("_")]
            near = difflib.get_close_matches(step, known, n=1, cutoff=0)
            nearest = f"; nearest is {near[0]!r}" if near else ""
            raise ConfigError(f"--transfer {text}: {name!r} is neither an argument nor an attribute of it{nearest}")
        holder = getattr(holder, step)


def config_of(task: Task, trained: Config) -> Config:
    """The configuration a policy was trained with, on another task."""
    fields = to_dict(trained)
    kept = fields["env_kwargs"] if task.env_id == trained.env_id else {}
    changed = [{f"{__name__}:Changed": {"attributes": dict(task.attributes)}}] if task.attributes else []
    other = {
        "env_id": task.env_id,
        "env_kwargs": {**kept, **task.arguments},
        "env_wrappers": [*changed, *fields["env_wrappers"]],
        "engine": "gymnasium",
        "vectorization": "auto",
    }
    return build_config({**fields, **other}, f"--transfer {task.name}")


def success_config(trained: Config) -> Config:
    """The same task, paid by success."""
    fields = to_dict(trained)
    wrappers = [*fields["env_wrappers"], f"{__name__}:SuccessAsReward"]
    return build_config(
        {**fields, "env_wrappers": wrappers, "engine": "gymnasium", "vectorization": "auto"}, trained.env_id
    )


def require_same_spaces(task: Task, spec: EnvSpec, trained: EnvSpec) -> None:
    if spec.obs_shape != trained.obs_shape or spec.obs_dtype != trained.obs_dtype:
        raise ConfigError(
            f"--transfer {task.name}: its observations are {list(spec.obs_shape)}, but the policy of {trained.env_id} "
            f"takes {list(trained.obs_shape)}; choose a task with the same spaces"
        )
    a, b = spec.action, trained.action
    if (a.kind, a.sizes, a.dim) != (b.kind, b.sizes, b.dim):
        raise ConfigError(
            f"--transfer {task.name}: its actions ({a.kind}, {list(a.sizes) or a.dim}) are not those of "
            f"{trained.env_id} ({b.kind}, {list(b.sizes) or b.dim}); choose a task with the same spaces"
        )
