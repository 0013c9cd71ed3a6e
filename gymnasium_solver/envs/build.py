"""One environment from a config: found, constructed, wrapped."""

from __future__ import annotations

import difflib
import importlib
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gymnasium as gym

from gymnasium_solver import trust
from gymnasium_solver.config.explaining import near
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import named
from gymnasium_solver.envs.compiled.styles import METHODS, style_of
from gymnasium_solver.envs.faults import environment_fault
from gymnasium_solver.envs.wrappers import FrameSkip, RewardRecord, apply_wrapper, changes_reward
from gymnasium_solver.errors import ConfigError, MissingExtraError, NotFoundError, SolverError

# Families whose ids appear only once their package is imported: prefix of the id → (module, our extra).
FAMILIES = {"ALE/": ("ale_py", "atari"), "MiniGrid-": ("minigrid", "minigrid"), "BabyAI-": ("minigrid", "minigrid")}

# Gymnasium's own families with dependencies of their own: module of the entry point → our extra.
EXTRAS = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco", "ale_py": "atari"}

# Gymnasium 1.3 took Taxi-v3 away; v4 differs only in the options is_rainy and fickle_passenger, which v3 had wrong.
RENAMED = {"Taxi-v3": "Taxi-v4"}


def build_env(config: Config, render_mode: str | None = None) -> gym.Env:
    """The environment of the config with its wrappers: frame skip, then `env_wrappers` inside out, then frame stack."""
    arguments = dict(config.env_kwargs)
    if render_mode is not None:
        arguments["render_mode"] = render_mode
    with warnings.catch_warnings():
        # Gymnasium's remarks on its own spaces and versions: nothing the user of an id can act on.
        warnings.filterwarnings("ignore", module="gymnasium")
        env = _construct(config, arguments)
        _require_spaces(env, config.env_id)
        if config.frame_skip > 1:
            env = FrameSkip(env, config.frame_skip)
        is_recorded = False
        for entry in config.env_wrappers:
            if changes_reward(entry) and not is_recorded:
                env, is_recorded = RewardRecord(env), True
            env = apply_wrapper(env, entry)
        if config.frame_stack > 1:
            env = apply_wrapper(env, {"frame_stack": config.frame_stack})
    return env


def with_own_rewards(config: Config) -> Config:
    """Without the built-in wrappers that change rewards: a policy is judged by what the environment pays it."""
    kept = [entry for entry in config.env_wrappers if not changes_reward(entry)]
    return config if len(kept) == len(config.env_wrappers) else config.model_copy(update={"env_wrappers": kept})


def registered_spec(config: Config) -> gym.envs.registration.EnvSpec | None:
    """Gymnasium's registration of the id; None for a class of the user's. NotFoundError names the nearest id."""
    env_id = config.env_id
    for prefix, (module, extra) in FAMILIES.items():
        if env_id.startswith(prefix):
            _register(module, extra, env_id)
    if (reference := trust.written(env_id)) is not None:
        trust.require(reference, "env_id")
    if ":" in env_id:
        imported, name = trust.load_module(env_id, "env_id"), env_id.partition(":")[2]
        if hasattr(imported, name):
            return None
        if name not in gym.registry and not re.search(r"-v\d+$", name):
            raise _no_class(imported, name)
        env_id = name
    if env_id not in gym.registry and env_id in RENAMED and not config.env_kwargs:
        env_id = RENAMED[env_id]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "out of date": the user asked for this version
            return gym.spec(env_id)
    except gym.error.Error as error:
        raise _not_found(config.env_id, env_id) from error


def time_limit(env: gym.Env) -> int | None:
    """Steps of the policy after which an episode is cut off, as the chain of wrappers has it."""
    chain = [env]
    while isinstance(chain[-1], gym.Wrapper):
        chain.append(chain[-1].env)
    limit = None
    for layer in reversed(chain):
        if isinstance(layer, gym.wrappers.TimeLimit):
            limit = layer._max_episode_steps if limit is None else min(limit, layer._max_episode_steps)
        elif limit is not None and isinstance(layer, (FrameSkip, gym.wrappers.MaxAndSkipObservation)):
            skip = layer.skip if isinstance(layer, FrameSkip) else layer._skip
            limit = -(-limit // skip)
    return limit


def _construct(config: Config, arguments: dict[str, Any]) -> gym.Env:
    spec = registered_spec(config)
    if spec is None:
        return _construct_class(config, arguments)
    entry_point = str(spec.entry_point)
    extra = next((extra for module, extra in EXTRAS.items() if entry_point.startswith(module)), None)
    limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
    try:
        if extra == "mujoco":
            _quiet_mujoco()
        return gym.make(spec, disable_env_checker=True, **limit, **arguments)
    except (gym.error.DependencyNotInstalled, ModuleNotFoundError) as error:
        if extra is not None:
            raise MissingExtraError(config.env_id, extra) from error
        raise ConfigError(f"env_id: {config.env_id} needs a package that is not installed: {error}") from error
    except Exception as error:
        raise _construction_failed(config, error) from error


def _construct_class(config: Config, arguments: dict[str, Any]) -> gym.Env:
    factory = named.environment(config.env_id)
    if "render_mode" in arguments and style_of(factory) is not None:
        raise ConfigError(
            f"env_id: {config.env_id} is a pure environment and cannot be drawn; write it as a gymnasium.Env with "
            "render() to watch it"
        )
    try:
        env = factory(**arguments)
    except Exception as error:
        raise _construction_failed(config, error) from error
    if style_of(env) is not None:
        return _on_host(config, factory)
    if not isinstance(env, gym.Env):
        raise ConfigError(
            f"env_id: {config.env_id} makes a {type(env).__name__}, neither a gymnasium.Env nor a pure environment; "
            f"derive it from gymnasium.Env, or write the methods {', '.join(METHODS['pure'])}"
        )
    if config.max_episode_steps is not None:
        env = gym.wrappers.TimeLimit(env, config.max_episode_steps)
    return env


def _on_host(config: Config, factory: Callable[..., Any]) -> gym.Env:
    from gymnasium_solver.envs.compiled import host, protocol  # they import JAX

    made = host.shared(factory, config.env_kwargs, config.env_id)
    own = protocol.time_limit(made.environment, config.env_id)
    limit = config.max_episode_steps or own
    if limit and own and limit > own and getattr(made.environment, "has_own_limit", False):
        raise ConfigError(f"max_episode_steps: {config.env_id} itself ends after {own} steps; use at most {own}")
    env: gym.Env = host.HostEnv(made, config.env_id)
    return env if limit is None else gym.wrappers.TimeLimit(env, limit)


def _construction_failed(config: Config, error: Exception) -> SolverError:
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, TypeError) and "argument 'render_mode'" in str(error):
        return ConfigError(
            f"env_id: {config.env_id} cannot be drawn, its __init__ takes no render_mode; add render_mode=None to it, "
            'keep it as self.render_mode, and name the modes in metadata = {"render_modes": ["rgb_array"]}'
        )
    if isinstance(error, TypeError) and config.env_kwargs:
        return ConfigError(f"env_kwargs: {config.env_kwargs} does not fit {config.env_id}: {message}")
    return environment_fault(f"environment {config.env_id} cannot be made with {config.env_kwargs}", error)


def _register(module: str, extra: str, env_id: str) -> None:
    try:
        package = importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(env_id, extra) from error
    gym.register_envs(package)
    if module == "ale_py":  # else every emulator prints a banner
        package.ALEInterface.setLoggerMode(package.LoggerMode.Error)


def _require_spaces(env: gym.Env, env_id: str) -> None:
    for name, example in (("observation_space", "Box(-1, 1, (4,))"), ("action_space", "Discrete(2)")):
        try:
            space = getattr(env, name)
        except AttributeError:
            space = None
        if not isinstance(space, gym.Space):
            found = "none" if space is None else f"a {type(space).__name__}"
            raise ConfigError(
                f"env_id: {env_id} needs a Gymnasium space as its {name}, and has {found}; set it in __init__, for "
                f"example self.{name} = gymnasium.spaces.{example}"
            )


def _no_class(module: ModuleType, name: str) -> NotFoundError:
    classes = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, gym.Env)]
    there = f"environments there: {', '.join(classes)}" if classes else "no environment is there"
    return NotFoundError(f"env_id: module {module.__name__!r} has no {name!r} ({there}){near(name, classes)}")


def _not_found(asked: str, name: str) -> NotFoundError:
    stem = re.sub(r"-v\d+$", "", name)
    versions = [key for key, spec in gym.registry.items() if re.sub(r"-v\d+$", "", key) == stem]
    if versions:
        nearest = max(versions, key=lambda key: gym.registry[key].version or 0)
    else:
        nearest = difflib.get_close_matches(name, gym.registry, n=1, cutoff=0)[0]
    return NotFoundError(
        f"env_id: {asked!r} is not registered in Gymnasium {gym.__version__}; nearest is {nearest!r} "
        "(a class of your own is written module:Class)"
    )


def _quiet_mujoco() -> None:
    """MuJoCo prints warnings and writes MUJOCO_LOG.TXT where it stands; make them Python warnings instead.

    Left out are deprecations: they are about the model files that come with Gymnasium.
    """

    def warn(message: str) -> None:
        if "deprecated" not in message:
            warnings.warn(f"MuJoCo: {message}", RuntimeWarning, stacklevel=2)

    importlib.import_module("mujoco").set_mju_user_warning(warn)
