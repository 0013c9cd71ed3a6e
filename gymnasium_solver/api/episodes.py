"""An episode of a checkpoint, in numbers and pictures, played by a process of its own.

A process of its own, because an environment is other people's code: it may hang, crash or print, and must not take
the server with it. Run as `python -m gymnasium_solver.api.episodes RUN CHECKPOINT SEED`; prints one JSON document.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver import processes
from gymnasium_solver.errors import EnvironmentFault, NotFoundError, SolverError
from gymnasium_solver.plain import plain

MOST_FRAMES = 300
MOST_STEPS = 5000
PICTURE_SIDE, PICTURE_QUALITY = 640, 60  # pixels of the longer side, about as wide as the page shows it
SECONDS = 120.0

_process: processes.Process | None = None


def play_apart(run_path: Path, checkpoint: str, seed: int | None, seconds: float = SECONDS) -> dict[str, Any]:
    """The episode's document, from a process that is ended if it takes too long; one at a time."""
    command = processes.module(__name__, str(run_path), checkpoint, "" if seed is None else str(seed))
    global _process
    _process = processes.start(command, environment={"SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1"})
    try:
        out, complaints, code = processes.finish(_process, seconds)
    except TimeoutError:
        raise EnvironmentFault(f"the episode was not over after {seconds:g} s; play it with gsolve play") from None
    try:
        answer = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        said = complaints.strip().splitlines() or [f"exit code {code}"]
        raise EnvironmentFault(f"the episode could not be played: {said[-1]}") from None
    if "error" in answer:
        failure = NotFoundError if answer["exit_code"] == NotFoundError.exit_code else SolverError
        raise failure(answer["error"])
    return answer


def end() -> None:
    """The episode that is being played, if one is: nobody is left to see it."""
    if _process is not None and _process.poll() is None:
        _process.kill()


def play(run_path: Path, checkpoint: str, seed: int | None) -> dict[str, Any]:
    """Greedy actions until the episode ends; and the estimated value before each."""
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.policy import policy_of

    run = Run(run_path)
    # Gymnasium's own environment is played; importing EnvPool only to describe it takes longer than importing JAX.
    policy = policy_of(run, checkpoint, engine="gymnasium")
    spec = policy.spec
    everything = np.ones(sum(spec.action.sizes), bool)
    actions: list[Any] = []
    rewards: list[float] = []
    values: list[float | None] = []
    with _environment(policy.config) as (env, why_undrawn):
        pictures = Pictures(None if why_undrawn else env)
        obs, info = env.reset(seed=seed)
        ended = False
        while not ended and len(actions) < MOST_STEPS:
            pictures.take()
            mask = info.get("action_mask", everything) if spec.has_action_mask else None
            action = policy(obs, mask)
            value = float(policy.value(obs[None])[0]) if policy.value is not None else np.nan
            values.append(value if np.isfinite(value) else None)
            obs, reward, terminated, truncated, info = env.step(action)
            actions.append(action.tolist())
            rewards.append(float(reward))
            ended = bool(terminated or truncated)
    frames = pictures.frames()
    return {
        "run_id": run.run_id,
        "checkpoint": checkpoint,
        "frames": frames,
        "actions": actions,
        "rewards": rewards,
        "values": values,
        "return": sum(rewards),
        "length": len(actions),
        "ended": ended,
        "notice": why_undrawn or pictures.trouble or (None if ended else f"cut off after {MOST_STEPS} steps"),
    }


class Pictures:
    """One of every step at first, of every second when they become too many, and so on: the whole episode is shown."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._kept: dict[int, str] = {}
        self._stride = 1
        self._step = 0
        self.trouble: str | None = None

    def take(self) -> None:
        step, self._step = self._step, self._step + 1
        if self._env is None or step % self._stride:
            return
        try:
            self._kept[step] = _data_url(self._env.render())
        except Exception as error:  # any error of someone else's drawing
            self._env, self._kept = None, {}
            self.trouble = f"the environment failed to draw itself: {type(error).__name__}: {error}"
        if len(self._kept) > MOST_FRAMES:
            self._stride *= 2
            self._kept = {step: picture for step, picture in self._kept.items() if step % self._stride == 0}

    def frames(self) -> list[str | None] | None:
        return [self._kept.get(step) for step in range(self._step)] if self._kept else None


@contextmanager
def _environment(config: Any) -> Iterator[tuple[Any, str | None]]:
    """With drawing, or without and the reason."""
    from gymnasium_solver.envs import make_env

    reason = None
    try:
        env = make_env(config, "rgb_array")
        if env.render_mode != "rgb_array":
            reason = f"{config.env_id} cannot be drawn"
    except Exception as error:
        env, reason = make_env(config, None), f"{config.env_id} cannot be drawn: {error}"
    try:
        yield env, reason
    finally:
        env.close()


def _data_url(picture: Any) -> str:
    from PIL import Image

    if isinstance(picture, list):  # environments that return the pictures since the last call
        picture = picture[-1]
    image = Image.fromarray(np.asarray(picture, np.uint8)).convert("RGB")
    if max(image.size) > PICTURE_SIDE:  # by a whole number: anything in between costs six times what encoding does
        image = image.reduce(math.ceil(max(image.size) / PICTURE_SIDE))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=PICTURE_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


def main() -> None:
    run_path, checkpoint, seed = sys.argv[1:]
    answer: dict[str, Any]
    try:
        with contextlib.redirect_stdout(sys.stderr):  # environments print; stdout is for the document
            answer = play(Path(run_path), checkpoint, int(seed) if seed else None)
    except SolverError as error:
        answer = {"error": str(error), "exit_code": error.exit_code}
    except Exception as error:
        answer = {"error": f"the episode failed: {type(error).__name__}: {error}", "exit_code": 1}
    sys.stdout.write("\n" + json.dumps(plain(answer)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # all is said and closed; taking JAX down in order takes half a second


if __name__ == "__main__":
    main()
