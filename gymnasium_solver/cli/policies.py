"""`gsolve evaluate` and `gsolve play`: what a trained policy does."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import CheckpointRef, Json, RunsDir, Trust
from gymnasium_solver.errors import ConfigError

Deterministic = Annotated[
    bool,
    typer.Option("--deterministic/--stochastic", help="Take the most likely action, or sample as in training."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the episodes.", show_default=False)]


def evaluate(
    ref: CheckpointRef,
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=1, help="Whole episodes to play.")] = 20,
    deterministic: Deterministic = True,
    seed: Seed = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Play fresh episodes and print their returns."""
    run, checkpoint = api.load_checkpoint(ref, runs_dir=runs_dir)
    with contextlib.redirect_stdout(sys.stderr):
        result = api.evaluate(run, checkpoint=checkpoint, episodes=episodes, deterministic=deterministic, seed=seed)
    threshold = run.summary().get("threshold")
    document = {
        "run_id": run.run_id,
        "checkpoint": checkpoint,
        "episodes": len(result.returns),
        "deterministic": deterministic,
        "mean": float(result.mean),
        "std": float(result.std),
        "min": float(result.returns.min()),
        "max": float(result.returns.max()),
        "length_mean": float(result.length_mean),
        "threshold": threshold,
        "solved": None if threshold is None else bool(result.mean >= threshold),
    }
    if json:
        output.emit_json({**document, "returns": result.returns, "lengths": result.lengths})
        return
    rows = ((name, output.number(value)) for name, value in document.items())
    output.emit_facts(rows)


def play(
    ref: CheckpointRef,
    video: Annotated[
        Path | None, typer.Option("--video", metavar="FILE", help="Write an .mp4 or .gif instead of opening a window.")
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=1, help="Episodes to play.")] = 1,
    fps: Annotated[
        float | None, typer.Option("--fps", min=0.1, help="Frames per second [default: the environment's].")
    ] = None,
    deterministic: Deterministic = True,
    seed: Seed = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Watch a policy act, in a window or as a video."""
    run, checkpoint = api.load_checkpoint(ref, runs_dir=runs_dir)
    if video is not None and video.suffix in (".mp4", ".gif"):  # of another one the player says what is wrong
        require_writable(video)
    with contextlib.redirect_stdout(sys.stderr):
        from gymnasium_solver.api.playback import play_episodes

        played = play_episodes(
            run, checkpoint, episodes=episodes, video=video, fps=fps, deterministic=deterministic, seed=seed
        )
    if json:
        output.emit_json(
            {
                "run_id": run.run_id,
                "checkpoint": checkpoint,
                "returns": [episode.total for episode in played],
                "lengths": [episode.length for episode in played],
                "cut_off": [episode.cut_off for episode in played],
                "video": video,
            }
        )
        return
    for number, episode in enumerate(played, start=1):
        end = f", cut off after {output.number(episode.length)} steps without an end" if episode.cut_off else ""
        output.message(f"episode {number}: return {output.number(episode.total)}{end}")
    if video is not None:
        output.emit(str(video))


def require_writable(video: Path) -> None:
    """Before anything is played: what the encoders say of it is a page long."""
    try:
        video.parent.mkdir(parents=True, exist_ok=True)
        is_new = not video.exists()
        video.open("ab").close()
        if is_new:
            video.unlink()
    except OSError as error:
        raise ConfigError(
            f"video: {str(video)!r} cannot be written: {error.strerror}; choose a directory that you can write to"
        ) from error
