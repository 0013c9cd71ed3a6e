"""Episodes of a checkpoint, played by a process of its own."""

from __future__ import annotations

import base64
import importlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from PIL import Image
from starlette.testclient import TestClient

from gymnasium_solver.api import episodes
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import EnvironmentFault, SolverError
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.web import run_routes

pytestmark = pytest.mark.integration


class Drawn:
    def __init__(self, fails_at: int = 10**9) -> None:
        self.calls, self._fails_at = 0, fails_at

    def render(self) -> Any:
        self.calls += 1
        if self.calls > self._fails_at:
            raise RuntimeError("no display")
        return np.full((90, 120, 3), self.calls % 256, np.uint8)


def test_long_episodes_keep_few_pictures_of_the_whole() -> None:
    env = Drawn()
    pictures = episodes.Pictures(env)
    for _ in range(1000):
        pictures.take()
    frames = pictures.frames()
    assert frames is not None
    shown = [step for step, frame in enumerate(frames) if frame]
    assert len(frames) == 1000
    assert 100 <= len(shown) <= episodes.MOST_FRAMES
    assert shown[0] == 0
    assert max(np.diff(shown)) == min(np.diff(shown))
    assert env.calls < 1000
    assert frames[0].startswith("data:image/jpeg;base64,")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("drawn", "shown"), [((400, 600), (400, 600)), ((900, 1200), (450, 600)), ((641, 100), (321, 50))]
)
def test_large_pictures_are_made_small(drawn: tuple[int, int], shown: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (*drawn, 3), np.uint8)
    url = episodes._data_url(noise)
    picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    assert picture.size == shown[::-1]
    assert len(url) < 200_000


def test_no_engine_is_imported_to_play_one_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """EnvPool alone takes longer to import than all else."""
    engines: list[str] = []

    def describe(config: Config) -> None:
        engines.append(config.engine)
        raise SolverError("enough is known")

    monkeypatch.setattr(importlib.import_module("gymnasium_solver.train.policy"), "describe", describe)
    monkeypatch.setattr(Run, "read_checkpoint", lambda *_: ({}, {}))
    with pytest.raises(SolverError, match="enough"):
        episodes.play(run.path, "best", None)
    assert (run.config["engine"], engines) == ("auto", ["gymnasium"])


def test_drawing_that_fails_leaves_the_numbers() -> None:
    pictures = episodes.Pictures(Drawn(fails_at=3))
    for _ in range(5):
        pictures.take()
    assert pictures.frames() is None
    assert "no display" in (pictures.trouble or "")


def test_one_episode_at_a_time(client: TestClient, run: Run) -> None:
    (run.path / "checkpoints").mkdir(exist_ok=True)
    (run.path / "checkpoints" / "best.safetensors").write_bytes(b"")
    with run_routes.playing:
        response = client.get(f"/api/runs/{run.run_id}/episode")
    assert response.status_code == 429
    assert response.headers["retry-after"] == "5"


def test_only_episodes_that_can_be_asked_for_again_are_kept(
    client: TestClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.path / "checkpoints").mkdir(exist_ok=True)
    (run.path / "checkpoints" / "best.safetensors").write_bytes(b"")
    played: list[int | None] = []
    monkeypatch.setattr(episodes, "play_apart", lambda path, name, seed: played.append(seed) or {})
    for seed in ({}, {"seed": 1}, {"seed": 1}, {}):
        assert client.get(f"/api/runs/{run.run_id}/episode", params=seed).status_code == 200
    assert played == [None, 1, None]
    assert len(client.app.app.state.answers._kept) == 1  # type: ignore[attr-defined]


def test_a_checkpoint_that_is_not_there(client: TestClient, run: Run) -> None:
    response = client.get(f"/api/runs/{run.run_id}/episode", params={"checkpoint": "../../x"})
    assert response.status_code == 404
    assert "none yet" in response.json()["error"]


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "hang"
    hanging.write_text("#!/bin/sh\nexec sleep 30\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    with pytest.raises(EnvironmentFault, match="not over after"):
        episodes.play_apart(tmp_path, "best", None, seconds=0.2)


def test_a_process_that_dies_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "die"
    dying.write_text("#!/bin/sh\necho 'the renderer gave up' >&2\nexit 7\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with pytest.raises(EnvironmentFault, match="the renderer gave up"):
        episodes.play_apart(tmp_path, "best", None)


@pytest.mark.slow
@pytest.mark.parametrize("ref", ["CartPole-v1:ppo", "CartPole-v1:dqn"])
def test_an_episode_of_a_trained_policy(client: TestClient, runs_dir: Path, ref: str) -> None:
    pytest.importorskip("pygame", reason="the [play] extra is not installed")
    from gymnasium_solver import api

    trained = api.train(ref, runs_dir=runs_dir, max_env_steps=3000)
    path = f"/api/runs/{trained.run_id}/episode"
    found = client.get(path, params={"checkpoint": "last", "seed": 1})
    assert found.status_code == 200, found.text
    episode = found.json()
    assert episode["length"] == len(episode["actions"]) == len(episode["rewards"]) == len(episode["values"])
    assert episode["return"] == sum(episode["rewards"])
    assert all(isinstance(value, float) for value in episode["values"])
    assert len(episode["frames"]) == episode["length"]
    assert client.get(path, params={"checkpoint": "last", "seed": 1}).json() == episode


@pytest.mark.slow
def test_an_environment_that_cannot_be_drawn_gives_its_numbers(client: TestClient, runs_dir: Path) -> None:
    from gymnasium_solver import api

    probe = "gymnasium_solver.envs.probes:ObservationReward:ppo"
    trained = api.train(probe, runs_dir=runs_dir, n_envs=4, n_steps=32, batch_size=32, max_env_steps=256)
    episode = client.get(f"/api/runs/{trained.run_id}/episode", params={"checkpoint": "last", "seed": 1}).json()
    assert episode["frames"] is None
    assert "cannot be drawn" in episode["notice"]
    assert len(episode["rewards"]) == episode["length"] > 0
