"""A change of our config fields in the words of the library that a run comes from.

`translate` gives a line for each field. A setting of theirs may be several of ours together, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.config.parameter_names import CLEANRL, RLLIB, SB3, TIANSHOU
from gymnasium_solver.runs.foreign.recover import is_off_policy

Settings = Mapping[str, Any]

TITLES = {"sb3": "stable-baselines3", "cleanrl": "CleanRL", "rllib": "RLlib", "tianshou": "Tianshou"}


def translate(library: str, changes: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> list[str]:
    """Lines that say the changes in the library's own words; none for a library without names of its own.

    `config` is the run's: some settings of theirs are several of ours together.
    """
    if library not in _SAY:
        return []
    whole = {**(config or {}), **changes}
    return [f"{_SAY[library](field, value, whole)}  # {TITLES[library]}" for field, value in changes.items()]


def _sb3(field: str, value: Any, config: Settings) -> str:
    special: dict[str, Callable[[], str]] = {
        "n_envs": lambda: f"make_vec_env(env_id, n_envs={value})",
        "max_env_steps": lambda: f"model.learn(total_timesteps={value})",
        "hidden_dims": lambda: f"policy_kwargs=dict(net_arch={list(value)})",
        "activation": lambda: f"policy_kwargs=dict(activation_fn=torch.nn.{_TORCH_ACTIVATIONS.get(value, value)})",
        "shared_network": lambda: "the default policies share no layers; write a custom policy",
        "log_std_init": lambda: f"policy_kwargs=dict(log_std_init={value})",
        "ortho_init": lambda: f"policy_kwargs=dict(ortho_init={value})",
        "normalize_obs": lambda: f"VecNormalize(env, norm_obs={value})",
        "normalize_reward": lambda: f"VecNormalize(env, norm_reward={value})",
        "frame_stack": lambda: f"VecFrameStack(env, n_stack={value})",
        "update_to_data": lambda: f"gradient_steps={_gradient_steps(value, config)}",
        "epsilon": lambda: _sb3_epsilon(value),
        "noise_std": lambda: f"action_noise=NormalActionNoise(np.zeros(n), {value} * np.ones(n))",
        "n_step": lambda: f"n_steps={value}",
    }
    if field in special:
        return special[field]()
    if field in SB3:
        return f"{SB3[field][0]}={_sb3_value(value)}"
    return _no_counterpart(field, value)


def _cleanrl(field: str, value: Any, config: Settings) -> str:
    name = CLEANRL.get(field, ("",))[0]
    if field == "policy_lr" and config.get("algo_id") == "sac":
        name = "policy_lr"
    if field == "batch_size":
        name = "batch_size"
        rollout = _rollout(config)
        if config.get("algo_id") in ("ppo", None) and rollout and value:
            rows = value * rollout if value <= 1 else value
            return f"--num-minibatches {max(1, round(rollout / rows))}"
    if field == "update_to_data":
        return f"--train-frequency {max(1, round(1 / (value * (config.get('n_envs') or 1))))}"
    if field == "epsilon" and isinstance(value, Mapping):
        share = value.get("to", 1.0)
        return f"--start-e {value.get('start')} --end-e {value.get('end', 0.0)} --exploration-fraction {share}"
    if field == "clip_range_vf":
        return "--no-clip-vloss" if value is None else "--clip-vloss, with --clip-coef as its range"
    if not name:
        return _no_counterpart(field, value, "edit the script")
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    if isinstance(value, Mapping):  # a schedule: CleanRL's learning rate falls in a line to zero, or not at all
        if field == "policy_lr" and value.get("schedule", "linear") == "linear" and not value.get("end"):
            return f"--{flag} {value.get('start')} --anneal-lr"
    elif value is not None:
        return f"--{flag} {value}"
    return _no_counterpart(field, value, "edit the script")


def _rllib(field: str, value: Any, config: Settings) -> str:
    rollout = _rollout(config)
    off_policy = is_off_policy(config.get("algo_id"))
    if field == "n_envs":
        return f".env_runners(num_envs_per_env_runner={value})"
    if field == "n_steps" and rollout:
        return f".training(train_batch_size_per_learner={rollout})"
    if field == "hidden_dims":
        return f'.rl_module(model_config={{"fcnet_hiddens": {list(value)}}})'
    if field == "activation":
        return f'.rl_module(model_config={{"fcnet_activation": "{value}"}})'
    if field == "max_env_steps":
        return f'stop={{"num_env_steps_sampled_lifetime": {value}}}'
    if field == "seed":
        return f".debugging(seed={value})"
    if field == "normalize_obs":
        return ".env_runners(env_to_module_connector=lambda *_: MeanStdFilter())" if value else "no MeanStdFilter"
    if field == "buffer_size":
        return f'.training(replay_buffer_config={{"capacity": {value}}})'
    if field == "update_to_data":
        return f".training(training_intensity={value * (config.get('batch_size') or 256):g})"
    if field == "batch_size" and off_policy:
        return f".training(train_batch_size_per_learner={value})"
    if field == "batch_size" and rollout and 0 < value <= 1:
        value = round(value * rollout)
    if field == "clip_range_vf":
        return f".training(vf_clip_param={'math.inf' if value is None else value})"
    if field == "epsilon":
        return f".env_runners(epsilon={_rllib_schedule(value, config)})"
    if field in RLLIB and field != "env_id":
        return f".training({RLLIB[field][0].rsplit('/', 1)[-1]}={_rllib_schedule(value, config)})"
    return _no_counterpart(field, value)


def _tianshou(field: str, value: Any, config: Settings) -> str:
    rollout = _rollout(config)
    if field == "n_steps" and rollout:
        return f"collection_step_num_env_steps={rollout} (step_per_collect before 2.0)"
    if field == "batch_size" and rollout and value and value <= 1:
        value = round(value * rollout)
    if field == "hidden_dims":
        return f"hidden_sizes={list(value)}"
    if field == "clip_range_vf":
        return f"value_clip={value is not None}"
    if field == "normalize_obs" and value:
        return "VectorEnvNormObs(envs)"
    if field == "normalize_reward":
        return f"return_scaling={value} (reward_normalization before 2.0)"
    if isinstance(value, Mapping) and field == "policy_lr":
        return f"lr={value.get('start')} with an LRSchedulerFactory down to {value.get('end', 0.0)}"
    if field in TIANSHOU and not isinstance(value, Mapping):
        names = TIANSHOU[field]
        older = f" ({names[-1]} before 2.0)" if field in ("n_epochs", "update_to_data", "n_envs") else ""
        return f"{names[0]}={value!r}{older}"
    return _no_counterpart(field, value)


_SAY = {"sb3": _sb3, "cleanrl": _cleanrl, "rllib": _rllib, "tianshou": _tianshou}
_TORCH_ACTIVATIONS = {"tanh": "Tanh", "relu": "ReLU", "elu": "ELU", "gelu": "GELU", "silu": "SiLU"}


def _no_counterpart(field: str, value: Any, instead: str = "") -> str:
    return f"({field}={value} has no counterpart{instead and f': {instead}'})"


def _sb3_value(value: Any) -> str:
    """A schedule is a function of what is left of training, from 1 to 0."""
    if not isinstance(value, Mapping):
        return repr(value)
    start, end = value.get("start", 0.0), value.get("end", 0.0)
    whole = value.get("from", 0) == 0 and value.get("to", 1) == 1 and not value.get("warmup")
    if value.get("schedule", "linear") == "linear" and whole:
        return f"lambda left: {end:g} + {start - end:g} * left" if end else f"lambda left: {start:g} * left"
    return f"lambda left: ...  # {dict(value)}"


def _sb3_epsilon(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"exploration_initial_eps={value}, exploration_final_eps={value}"
    return (
        f"exploration_initial_eps={value.get('start')}, exploration_final_eps={value.get('end', 0.0)}, "
        f"exploration_fraction={value.get('to', 1.0)}"
    )


def _gradient_steps(update_to_data: float, config: Settings) -> int:
    return max(1, round(update_to_data * (config.get("train_freq") or 1) * (config.get("n_envs") or 1)))


def _rllib_schedule(value: Any, config: Settings) -> str:
    if not isinstance(value, Mapping):
        return repr(value)
    end = value.get("to", 1.0)
    steps = end if end > 1 else end * (config.get("max_env_steps") or 1_000_000)
    return f"[[0, {value.get('start')}], [{int(steps)}, {value.get('end', 0.0)}]]"


def _rollout(config: Settings) -> int | None:
    n_envs, n_steps = config.get("n_envs"), config.get("n_steps")
    return n_envs * n_steps if isinstance(n_envs, int) and isinstance(n_steps, int) else None
