"""Playing with environments of a user's own, under a policy that only follows its mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from gymnasium_solver.api import playback
from gymnasium_solver.api.playback import Episode, play_episodes
from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import describe
from gymnasium_solver.errors import ConfigError, EnvironmentFault

pytest.importorskip("imageio")
PICTURE = np.zeros((32, 32, 3), np.uint8)


class Countdown(gym.Env):
    """Five steps; the mask, given at reset alone, forbids action 0."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(3)
    steps = 5

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.left = self.steps
        return np.zeros(2, np.float32), {"action_mask": np.array([0, 1, 1], np.int8)}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.left -= 1
        return np.zeros(2, np.float32), float(action), self.left == 0, False, {}

    def render(self) -> Any:
        return PICTURE


class Endless(Countdown):
    steps = -1


class Undrawn(Countdown):
    render = gym.Env.render


class Blank(Countdown):
    def render(self) -> Any:
        return None


class Breaking(Countdown):
    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        if self.render_mode:
            raise RuntimeError("the motor is stuck")
        return super().step(action)


class Windowless(Countdown):
    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = None


class Modeless(Countdown):
    def __init__(self) -> None:
        pass


class FirstAllowed:
    def __init__(self, name: str) -> None:
        self.config = load_config("CartPole-v1:ppo", {"env_id": f"{__name__}:{name}"})
        self.spec = describe(self.config)

    def reset(self) -> None: ...

    def __call__(self, obs: np.ndarray, mask: np.ndarray | None = None, rng: Any = None) -> np.ndarray:
        assert mask is not None and mask.shape == (3,)
        return mask.argmax()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    from gymnasium_solver.train import policy

    def call(name: str, **options: Any) -> list[Episode]:
        monkeypatch.setattr(policy, "policy_of", lambda *_: FirstAllowed(name))
        return play_episodes(None, "best", video=tmp_path / "x.gif", **{"episodes": 1, **options})  # type: ignore[arg-type]

    return call


def test_an_info_without_a_mask_allows_everything(play: Any, tmp_path: Path) -> None:
    assert play("Countdown", episodes=2) == [Episode(1.0, 5, cut_off=False)] * 2
    assert (tmp_path / "x.gif").stat().st_size > 0


def test_an_episode_without_an_end_is_cut_off(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback, "LONGEST_EPISODE", 20)
    assert play("Endless") == [Episode(1.0, 20, cut_off=True)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Undrawn", "has no render()"),
        ("Blank", "returned NoneType from render()"),
        ("Breaking", "failed in step(): RuntimeError: the motor is stuck"),
    ],
)
def test_faults_of_the_environment_are_called_that(play: Any, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(EnvironmentFault) as failure:
        play(name)
    assert words in str(failure.value)
    assert name in str(failure.value)
    assert not (tmp_path / "x.gif").exists()


def test_an_environment_that_ignores_render_mode(play: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be drawn as 'rgb_array'"):
        play("Windowless")


def test_an_environment_that_takes_no_render_mode(play: Any) -> None:
    with pytest.raises(ConfigError, match="Modeless cannot be drawn, its __init__ takes no render_mode; add"):
        play("Modeless")


def test_a_video_that_cannot_be_written_is_one_sentence(gsolve: Any, fit: Any, tmp_path: Path) -> None:
    small = {"n_envs": 4, "n_steps": 32, "batch_size": 32, "max_env_steps": 256, "eval_episodes": 1}
    run = fit("CartPole-v1:ppo", **small, max_episode_steps=32).run
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.mp4").mkdir()
    for video in (tmp_path / "file" / "x.gif", tmp_path / "folder.mp4"):
        result = gsolve("play", str(run.path), "--video", str(video))
        assert result.code == 2
        assert f"video: '{video}' cannot be written: " in result.err
        assert "bug" not in result.err and "ffmpeg" not in result.err.lower()
