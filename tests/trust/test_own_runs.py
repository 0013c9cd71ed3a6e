"""The user's own runs need no flag; a run that was made elsewhere, copied under another name or edited does."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gymnasium_solver as gs
from gymnasium_solver import trust
from gymnasium_solver.cli.main import main
from gymnasium_solver.errors import ConfigError, TrustError
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.trust import gate, origin

pytestmark = pytest.mark.integration

MINE = """
import gymnasium as gym
import gymnasium_solver


class Line(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)

    def __init__(self, length=5):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps >= self.length, False, {}


def plain(length=5):
    return Line(length)


@gymnasium_solver.factory
def declared(length=5):
    return Line(length)
"""
TINY = {"max_env_steps": 64, "n_envs": 2, "n_steps": 16, "batch_size": 32, "n_epochs": 1, "eval_episodes": 1}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("GSOLVE_RUNS_DIR", raising=False)
    sys.modules.pop("mine", None)
    return tmp_path


@pytest.fixture
def another_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Which knows nothing of what was asked for in this one."""
    return lambda: monkeypatch.setattr(gate, "_open", {"asked": set(), "trusted": set()})


def evaluate(run: Run | str, *options: str) -> int:
    return main(["evaluate", str(run.path if isinstance(run, Run) else run), "-n", "1", *options])


def edit(run: Run, **fields: Any) -> None:
    path = run.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("name", ["Line", "plain", "declared"])
def test_ones_own_run_needs_no_flag(here: Path, another_process: Callable[[], None], name: str) -> None:
    run = gs.train(f"mine:{name}:ppo", **TINY, env_kwargs={"length": 4})
    another_process()
    assert evaluate(run) == 0
    another_process()
    assert gs.resume(run, max_env_steps=96).status["status"] == "completed"
    another_process()
    moved = here / "elsewhere" / run.run_id
    shutil.copytree(run.path, moved)
    assert evaluate(str(moved)) == 0
    for file in moved.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    another_process()
    assert evaluate(str(moved)) == 0


def test_what_is_not_as_this_installation_made_it_needs_one(
    here: Path, another_process: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gs.train("mine:Line:ppo", **TINY)
    renamed = shutil.copytree(run.path, run.path.parent / "20200101-000000-mine")
    changed = {
        "copied under another name": lambda: Run(Path(renamed)),
        "edited arguments": lambda: edit(run, env_kwargs={"length": 9}) or run,
        "edited wrappers": lambda: edit(run, env_kwargs={}, env_wrappers=["mine:plain"]) or run,
        "of another user": lambda: (
            monkeypatch.setenv("XDG_STATE_HOME", str(here / "other")) or edit(run, env_wrappers=[]) or run
        ),
    }
    for what, change in changed.items():
        another_process()
        capsys.readouterr()
        assert evaluate(change()) == 2, what
        said = capsys.readouterr().err
        assert "was not made by this installation" in said and "--trust" in said and "mine:" in said
    another_process()
    assert evaluate(run, "--trust") == 0
    another_process()
    with pytest.raises(TrustError):
        gs.evaluate(run, episodes=1)
    assert gs.evaluate(run, episodes=1, trust=True).returns.shape == (1,)
    another_process()
    assert run.policy("last", trust=True)


def test_with_trust_alone_a_function_has_to_say_that_it_is_a_factory(
    here: Path, another_process: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    run = gs.train("mine:Line:ppo", **TINY)
    edit(run, env_id="mine:plain")
    another_process()
    assert evaluate(run, "--trust") == 2
    assert "@gymnasium_solver.factory" in capsys.readouterr().err
    edit(run, env_id="mine:declared")
    assert evaluate(run, "--trust") == 0


def test_the_variable_lists_all_that_may_be_imported(
    here: Path, another_process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = gs.train("mine:Line:ppo", **TINY)
    monkeypatch.setenv(trust.ALLOWED, "other")
    assert evaluate(run) == 2, "on record, but not in the list"
    assert evaluate(run, "--trust") == 2
    monkeypatch.setenv(trust.ALLOWED, "other, mine")
    assert evaluate(run) == 0


def test_a_person_at_the_terminal_is_shown_what_would_be_imported(
    here: Path, another_process: Callable[[], None]
) -> None:
    run = gs.train("mine:Line:ppo", **TINY)
    edit(run, env_kwargs={"length": 9})
    another_process()
    asked: list[str] = []
    for answer in (False, True):
        gate.ask_with(lambda text, answer=answer: asked.append(text) or answer)
        assert evaluate(run) == (0 if answer else 2)
    assert "mine:Line" in asked[0] and str(here / "mine.py") in asked[0] and run.run_id in asked[0]


def test_seeds_and_experiments_of_ones_own_go_on_without_a_flag(
    here: Path, another_process: Callable[[], None]
) -> None:
    words = [f"-s{name}={value}" for name, value in TINY.items()]
    assert main(["train", "mine:Line:ppo", "--seeds", "2", "-q", *words]) in (0, 5)
    group = next((here / "runs").glob("*/group.json")).parent
    shutil.rmtree(next((here / "runs").glob("*-s43-*")))
    another_process()
    assert main(["train", "--resume", group.name, "-q"]) in (0, 5)
    assert len(list((here / "runs").glob("*-s4?-*"))) == 2


def test_the_key_is_private_and_made_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust.allow(["mine:Line"])
    with ThreadPoolExecutor(16) as pool:
        signatures = set(pool.map(_signed, range(16)))
    assert len(signatures) == 1 and None not in signatures
    key = here / "state" / "gymnasium-solver" / "key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.stat().st_size == origin.BYTES
    assert [path.name for path in key.parent.iterdir()] == ["key"]
    key.chmod(0o644)
    assert _signed(0) is None, "a key that others can read signs nothing"


def _signed(_: int) -> str | None:
    return trust.signature("run", {"env_id": "mine:Line"})


def test_without_a_place_for_the_key_training_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "file"))
    assert "signature" not in gs.train("mine:Line:ppo", **TINY).environment


def test_what_nobody_asked_for_is_not_signed(here: Path) -> None:
    assert trust.signature("run", {"env_id": "mine:Line"}) is None
    assert trust.signature("run", {"env_id": "CartPole-v1"}) is None
    assert not os.path.exists(here / "state")  # noqa: PTH110


def test_a_gymnasium_id_of_a_module_passes_the_same_gate(here: Path) -> None:
    from gymnasium_solver.config.schema import PPOConfig
    from gymnasium_solver.envs import describe

    for env_id in ("mine:Line-v0", "mine:ns/Line-v0", "GymV26Environment-v0"):
        with pytest.raises(TrustError):
            describe(PPOConfig(env_id=env_id))
    for odd in ("mine:x:Line-v0", "mine.py:Line", "a b:Line", ":Line", "mine:"):
        with pytest.raises(ConfigError):
            describe(PPOConfig(env_id=odd))
    assert "mine" not in sys.modules
