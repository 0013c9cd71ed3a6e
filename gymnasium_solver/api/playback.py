"""Whole episodes of one environment, drawn: in a window, or into a video file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gymnasium_solver.errors import ConfigError, EnvironmentFault, MissingExtraError, SolverError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import gymnasium

    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.policy import Policy

DEFAULT_FPS = 30.0
LONGEST_EPISODE = 27_000  # steps, where the environment sets no limit: half an hour of Atari, its customary limit


class Episode(NamedTuple):
    """What was played; `cut_off` if it had not ended by itself after as many steps as are played at most."""

    total: float
    length: int
    cut_off: bool


def play_episodes(
    run: Run,
    checkpoint: str,
    *,
    episodes: int,
    video: Path | None = None,
    fps: float | None = None,
    deterministic: bool = True,
    seed: int | None = None,
) -> list[Episode]:
    """Play, drawing every step: in a window, or into the video file."""
    mode = "human" if video is None else "rgb_array"
    if video is None:
        _require_display()
    elif video.suffix not in (".mp4", ".gif"):
        raise ConfigError(
            f"video: {str(video)!r} is neither .mp4 nor .gif; use for example {video.with_suffix('.mp4')}"
        )
    else:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # drawing into memory needs no display
    from gymnasium_solver.train.policy import policy_of

    policy = policy_of(run, checkpoint)
    with ExitStack() as stack:
        env = stack.enter_context(_rendered(policy, mode))
        if fps is not None:  # what environments pace their windows by; theirs is shared by the class
            env.unwrapped.metadata = {**env.metadata, "render_fps": fps}
        rate = float(fps or env.metadata.get("render_fps") or DEFAULT_FPS)
        draw = stack.enter_context(_writer(video, rate)) if video is not None else None
        rng = None if deterministic else np.random.default_rng(seed)
        return [_episode(env, policy, rng, seed if index == 0 else None, draw) for index in range(episodes)]


def _episode(
    env: gymnasium.Env,
    policy: Policy,
    rng: np.random.Generator | None,
    seed: int | None,
    draw: Callable[[Any], None] | None,
) -> Episode:
    spec = policy.spec
    limit = spec.max_episode_steps or LONGEST_EPISODE
    everything = np.ones(sum(spec.action.sizes), bool)  # what an info without a mask allows
    with _fault_of(spec.env_id, "reset"):
        obs, info = env.reset(seed=seed)
    policy.reset()
    total, length, ended = 0.0, 0, False
    _draw(env, spec.env_id, draw)
    while not ended and length < limit:
        mask = info.get("action_mask", everything) if spec.has_action_mask else None
        action = policy(obs, mask, rng=rng)
        with _fault_of(spec.env_id, "step"):
            obs, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        length += 1
        ended = bool(terminated or truncated)
        _draw(env, spec.env_id, draw)
    return Episode(total, length, cut_off=not ended)


def _draw(env: gymnasium.Env, env_id: str, draw: Callable[[Any], None] | None) -> None:
    if draw is None:  # a window draws itself
        return
    with _fault_of(env_id, "render"):
        picture: Any = env.render()
    if getattr(picture, "ndim", 0) != 3:
        raise EnvironmentFault(
            f"environment {env_id} returned {type(picture).__name__} from render(), not an RGB picture; with "
            "render_mode='rgb_array' it has to be a uint8 array of height x width x 3"
        )
    draw(picture)


@contextmanager
def _fault_of(env_id: str, call: str) -> Iterator[None]:
    from gymnasium.error import DependencyNotInstalled

    try:
        yield
    except (SolverError, DependencyNotInstalled):
        raise
    except NotImplementedError as error:
        raise EnvironmentFault(
            f"environment {env_id} has no {call}(); it needs one to be played into a video"
        ) from error
    except Exception as error:
        raise EnvironmentFault(f"environment {env_id} failed in {call}(): {type(error).__name__}: {error}") from error


@contextmanager
def _rendered(policy: Policy, mode: str) -> Iterator[gymnasium.Env]:
    from gymnasium.error import DependencyNotInstalled

    from gymnasium_solver.envs import make_env

    env = make_env(policy.config, mode)
    try:
        if env.render_mode != mode:
            modes = ", ".join(env.metadata.get("render_modes", ())) or "none"
            raise ConfigError(f"{policy.config.env_id} cannot be drawn as {mode!r}; its render modes: {modes}")
        yield env
    except DependencyNotInstalled as error:
        raise MissingExtraError("drawing this environment", "play") from error
    finally:
        env.close()


@contextmanager
def _writer(video: Path, fps: float) -> Iterator[Callable[[Any], None]]:
    try:
        import imageio.v2 as imageio
    except ImportError as error:
        raise MissingExtraError("play --video", "play") from error
    video.parent.mkdir(parents=True, exist_ok=True)
    # To keep Ctrl-C from ffmpeg it would fork, which may hang beside the threads of JAX; and half a video is deleted.
    os.environ.setdefault("IMAGEIO_FFMPEG_NO_PREVENT_SIGINT", "1")
    # Players want even sides, and imageio's own default (multiples of 16) would stretch the picture.
    options: dict[str, Any]
    options = {"fps": fps, "macro_block_size": 2} if video.suffix == ".mp4" else {"duration": 1000 / fps, "loop": 0}
    try:
        writer = imageio.get_writer(video, **options)
    except (ImportError, ValueError) as error:  # imageio is there, its ffmpeg is not
        raise MissingExtraError(f"play --video {video.suffix}", "play") from error
    try:
        with writer:
            yield writer.append_data
    except BaseException:
        video.unlink(missing_ok=True)  # half a video plays nowhere
        raise


def _require_display() -> None:
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in displays):
        raise ConfigError("there is no display to open a window on; write a file instead with --video episode.mp4")
