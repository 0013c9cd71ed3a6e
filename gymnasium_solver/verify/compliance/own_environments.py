"""Details that live around our PPO: wrappers for Atari, and what becomes of continuous actions and observations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnasium_solver.algorithms.normalizer import make_normalizer
from gymnasium_solver.config.base import Config
from gymnasium_solver.config.cards.ppo import IMAGE, PPOConfig
from gymnasium_solver.envs.actions import action_codec
from gymnasium_solver.envs.wrappers import NAMED, apply_wrapper
from gymnasium_solver.errors import SolverError
from gymnasium_solver.networks.actor_critic import make_actor_critic
from gymnasium_solver.networks.layers import ACTIVATIONS, convolution, dense
from gymnasium_solver.ops import distributions
from gymnasium_solver.train.collect import Collector
from gymnasium_solver.verify.compliance import own_update
from gymnasium_solver.verify.compliance.details import finding
from gymnasium_solver.verify.compliance.results import Finding, Presence

Array = np.ndarray
SIDE = 96


class Frames(gym.Env):
    """Images whose left half shows only in odd steps; every step is worth 3."""

    observation_space = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        self.count = 0
        return self._frame(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return self._frame(), 3.0, False, False, {}

    def _frame(self) -> Array:
        frame = np.full((SIDE, SIDE, 3), 100, np.uint8)
        frame[:, : SIDE // 2] = 200 * (self.count % 2)
        return frame


def _wrapped(*entries: str | dict[str, Any]) -> tuple[Array, float]:
    """Observation and reward after one step."""
    env: gym.Env = Frames()
    for entry in entries:
        env = apply_wrapper(env, entry)
    env.reset(seed=0)
    obs, reward, *_ = env.step(0)
    return np.asarray(obs), float(reward)


def _found(holds: bool, otherwise: Presence = "absent") -> Presence:
    return "present" if holds else otherwise


def atari_details() -> Iterator[Finding]:
    offered = inspect.signature(gym.wrappers.AtariPreprocessing).parameters
    wrapper = "gymnasium.wrappers:AtariPreprocessing in env_wrappers"
    yield finding(14, _found("noop_max" in offered), f"by {wrapper} (noop_max 30); sticky_actions is there too")
    obs, reward = _wrapped({"max_and_skip": 4})
    merged = reward == 12 and int(obs[0, 0, 0]) == 200
    yield finding(15, _found(merged), f"max_and_skip: four steps of reward 3 give {reward:g}, flicker is gone")
    lives = "different" if "terminal_on_life_loss" in offered else "absent"
    yield finding(16, lives, f"by {wrapper} (terminal_on_life_loss), which begins a new game with each life")  # type: ignore[arg-type]
    yield finding(17, _found(any("fire" in name for name in NAMED)), "no such wrapper; one of your own as module:Class")
    yield finding(18, *_small_and_grey())
    _, clipped = _wrapped("reward_clip")
    _, small = _wrapped({"reward_scale": 0.1}, "reward_clip")
    evidence = f"reward_clip: 3 becomes {clipped:g}, 0.3 stays {small:.1f}; the same where rewards are whole numbers"
    yield finding(19, "present" if small == 1 else "different", evidence)
    stacked = _wrapped({"frame_stack": 4})[0].shape
    yield finding(
        20, _found(stacked[0] == 4 and "frame_stack" in Config.model_fields), f"frame_stack: 4 gives {stacked}"
    )
    yield from _network()


def _small_and_grey() -> tuple[Presence, str]:
    try:
        shape = _wrapped("grey", {"resize": 84})[0].shape
    except SolverError as error:
        return "present", f"grey and resize are offered, not tried: {error}"
    return _found(shape == (84, 84)), f"grey and resize make {SIDE} × {SIDE} × 3 into {shape[0]} × {shape[1]}"


def _network() -> Iterator[Finding]:
    """The network that images get by default, on a white picture: as if every pixel were 1."""
    network = make_actor_critic(
        obs_shape=(84, 84, 4),
        is_image=True,
        n_actor_params=6,
        std_dim=0,
        use_sde=False,
        hidden_dims=tuple(IMAGE["hidden_dims"]),
        activation=str(IMAGE["activation"]),
        shared=bool(IMAGE["shared_network"]),
        orthogonal=True,
        log_std_init=0.0,
        dtype=np.float32,
    )
    params = network.init(np.random.default_rng(0))
    trunks = list(params["trunk"])
    layers = params["trunk"][trunks[0]]
    channels = [layer["weight"].shape[-1] for layer in layers["convolutions"]]
    width = layers["dense"][0]["weight"].shape[-1]
    usual = trunks == ["shared"] and channels == [32, 64, 64] and width == 512
    evidence = f"convolutions {', '.join(map(str, channels))}, dense {width}, {'one trunk' if usual else trunks}"
    yield finding(21, _found(usual, "different"), f"{evidence}: the default for images")
    hidden: Any = np.ones((1, 84, 84, 4), np.float32)
    activate = ACTIVATIONS[str(IMAGE["activation"])]
    for layer, (kernel, stride) in zip(layers["convolutions"], ((8, 4), (4, 2), (3, 1)), strict=True):
        hidden = activate(convolution(layer, hidden, kernel, stride))
    hidden = activate(dense(layers["dense"][0], hidden.reshape(1, -1)))
    wanted = float(dense(params["critic_head"], hidden)[0, 0])
    got = float(network.value(params, np.full((1, 84, 84, 4), 255, np.uint8))[0])  # type: ignore[arg-type]
    same = abs(got - wanted) < 1e-4 * (1 + abs(wanted))
    yield finding(22, _found(same), f"bytes of 255 give the value of ones ({got:.4f}, {wanted:.4f})")


def continuous_details() -> Iterator[Finding]:
    gaussian = own_update.descended("box")
    yield finding(23, _found(gaussian.error < 2e-3), f"gradient of an update as in NumPy, error {gaussian.error:.1e}")
    made = own_update.make("box")
    log_std = made.state["params"]["actor_head"]["log_std"]
    free = log_std.shape == (2,) and not log_std.any()
    yield finding(
        24, _found(free, "different"), f"{log_std.size} parameters beginning at {log_std.max():g} (log_std_init)"
    )
    yield finding(25, *_components())
    trunk = made.state["params"]["trunk"]
    sizes = ", ".join(str(layer["weight"].shape[1]) for layer in trunk.get("policy", {"dense": []})["dense"])
    activation = PPOConfig.model_fields["activation"].default
    apart = set(trunk) == {"policy", "value"} and sizes == "64, 64" and activation == "tanh"
    yield finding(26, _found(apart, "different"), f"two by default, {sizes} {activation} units each")
    yield finding(27, *_stored_action())
    yield from _normalisers()


def _components() -> tuple[Presence, str]:
    both, one = distributions.diagonal_gaussian(2), distributions.diagonal_gaussian(1)
    params, action = np.array([0.3, -0.2, 0.1, -0.4], np.float32), np.array([1.0, 0.5], np.float32)
    together = float(both.log_prob(params, action))  # type: ignore[arg-type]
    apart = [float(one.log_prob(params[[i, i + 2]], action[[i]])) for i in (0, 1)]  # type: ignore[arg-type]
    return _found(abs(together - sum(apart)) < 1e-5), f"{together:.4f} = {apart[0]:.4f} + {apart[1]:.4f}"


def _stored_action() -> tuple[Presence, str]:
    codec = action_codec(spaces.Box(-2, 2, (1,)), True, "Imaginary-v0")
    taken: list[Array] = []
    nothing = np.zeros((1, 1), np.float32)

    def step(action: Array) -> Any:
        taken.append(codec.batch(action))
        ended = np.zeros(1, bool)
        return SimpleNamespace(reward=ended, terminated=ended, truncated=ended, obs=nothing, action_mask=None)

    spec = SimpleNamespace(
        action=codec.spec,
        obs_shape=(1,),
        obs_dtype=np.float32,
        has_action_mask=False,
        changes_reward=False,
        env_id="",
    )
    engine: Any = SimpleNamespace(spec=spec, n_envs=1, step=step, reset=lambda seed: (nothing, None))
    drawn = np.array([[3.0]], np.float32)
    batch, _ = Collector(engine, 1, lambda *_: drawn, 0).collect(None, np.zeros(1))
    stored, acted = float(batch["action"][0, 0, 0]), float(taken[0][0, 0])
    right = stored == 3 and acted == 2
    return _found(right), f"3.0 drawn, bounds ±2: {acted:g} acted, {stored:g} stored; [-1, 1] is scaled to the bounds"


def _normalisers() -> Iterator[Finding]:
    fields = {"env_id": "Imaginary-v0", "normalize_obs": True, "normalize_reward": True, "n_envs": 4, "n_steps": 64}
    config = PPOConfig(**fields)  # type: ignore[arg-type]
    normalizer = make_normalizer(config, own_update.spec_for("discrete"))
    rng = np.random.default_rng(0)
    obs = rng.normal(5, 3, (65, 4, own_update.FEATURES)).astype(np.float32)
    batch: Any = {"obs": obs, "reward": np.full((64, 4), 2.0, np.float32), "valid": np.ones((64, 4), bool)}
    batch |= {"terminated": np.zeros((64, 4), bool), "truncated": np.zeros((64, 4), bool)}
    state = normalizer.observe(normalizer.initial(), batch)
    scaled = np.asarray(normalizer.obs(state, batch["obs"][:-1]))
    centred = abs(scaled.mean()) < 1e-3 and abs(scaled.std() - 1) < 0.02
    default = "normalize_obs; off by default, on for continuous actions without a file of their own"
    evidence = (
        f"mean {scaled.mean():+.4f}, deviation {scaled.std():.3f} with {default}; statistics change between updates"
    )
    yield finding(28, _found(centred, "different"), evidence)
    far = float(np.asarray(normalizer.obs(state, np.full((1, own_update.FEATURES), 1e6, np.float32))).max())  # type: ignore[arg-type]
    yield finding(29, _found(far == 10, "different"), f"1,000,000 becomes {far:g} (clip_obs)")
    returns, total = [], 0.0
    for _ in range(64):
        total = total * config.gamma + 2.0
        returns.append(total)
    wanted = 2.0 / float(np.std(returns))
    got = float(np.asarray(normalizer.reward(state, np.float32(2))))  # type: ignore[arg-type]
    evidence = f"2 becomes {got:.4f}, 2 / deviation of the returns is {wanted:.4f}, with normalize_reward"
    yield finding(30, _found(abs(got - wanted) < 1e-3, "different"), evidence)
    huge = float(np.asarray(normalizer.reward(state, np.float32(1e6))))  # type: ignore[arg-type]
    yield finding(31, _found(huge == 10, "different"), f"1,000,000 becomes {huge:g} (clip_reward)")
