"""What several rooms' tests share: the tiers, and quick trainings into a temporary directory.

A test is `unit` unless it is marked `integration` or `slow`, or uses a fixture that trains or serves. Unit tests cannot
train, start Python or listen on a port: one that tries fails, in whichever tier it is run.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gymnasium_solver import trust
from gymnasium_solver.train import loop

PROBES = "gymnasium_solver.envs.probes"
HEAVY_FIXTURES = {"fit", "gsolve", "process", "trained"}
HEAVY_MODULE = re.compile(r"^pytestmark = pytest\.mark\.(integration|slow)\b", re.MULTILINE)

_unit_test: str | None = None  # the one in progress


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The unit tier does not even import modules that have nothing for it: what they need is slow to import."""
    if config.option.markexpr == "unit" and collection_path.suffix == ".py":
        return bool(HEAVY_MODULE.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        heavy = item.get_closest_marker("integration") or item.get_closest_marker("slow")
        if not heavy and HEAVY_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("unit")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _unit_test
    _unit_test = item.nodeid if item.get_closest_marker("unit") else None
    try:
        return (yield)
    finally:
        _unit_test = None


def _refuse(what: str) -> None:
    if _unit_test is not None:
        pytest.fail(f"a unit test {what}; mark it with @pytest.mark.integration")


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.bind" and isinstance(arguments[1], tuple):  # other addresses are files: pipes between processes
        _refuse("listens on a port")
    elif event == "subprocess.Popen" and os.fspath(arguments[0]) == sys.executable:
        _refuse("starts Python")


def _watched(run: Callable[..., Any]) -> Callable[..., Any]:
    def watched(*arguments: Any, **options: Any) -> Any:
        _refuse("trains")
        return run(*arguments, **options)

    return watched


# Keys and records of the tests are not the user's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="gsolve-state-")


@pytest.fixture(autouse=True)
def fresh_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test lets in, no other may import."""
    monkeypatch.setattr(trust.gate, "_open", {"asked": set(), "trusted": set()})
    monkeypatch.setattr(trust.gate, "_doubts", {})
    monkeypatch.setattr(trust.gate, "_question", None)
    monkeypatch.delenv(trust.ALLOWED, raising=False)


_level = trust.gate._level
# Environments among the tests are named by whoever runs them; fixtures of a module need them before any test.
trust.gate._level = lambda reference: "asked" if reference.startswith("tests.") else _level(reference)
sys.addaudithook(_watch)
loop.Loop.run = _watched(loop.Loop.run)  # type: ignore[method-assign]


class Fitted(NamedTuple):
    run: Any
    algorithm: Any
    state: Any

    obs_sizes: tuple[int, ...]

    def value(self, *observations: float) -> np.ndarray:
        return np.asarray(self.algorithm.value(self.state, self._seen(observations)))

    def greedy(self, *observations: float, mask: np.ndarray | None = None) -> np.ndarray:
        seen = self._seen(observations)
        action, _ = self.algorithm.greedy(self.algorithm.actor(self.state), self.algorithm.begin(len(seen)), seen, mask)
        return np.asarray(action)

    def _seen(self, observations: tuple[float, ...]) -> np.ndarray:
        """A probe's numbers as the policy gets them: as they are, or -1, 0, 1 as one of three kinds."""
        numbers = np.array(observations, np.float32)
        return np.eye(3, dtype=np.float32)[(numbers + 1).astype(int)] if self.obs_sizes else numbers[:, None]


@pytest.fixture
def fit(tmp_path: Path) -> Callable[..., Fitted]:
    """Train `ENV:VARIANT` with overrides and hand back the run, the algorithm and its final state."""

    def fit(ref: str, **overrides: Any) -> Fitted:
        from gymnasium_solver.algorithms import make_algorithm
        from gymnasium_solver.config.load import load_config
        from gymnasium_solver.envs import describe
        from gymnasium_solver.train.checkpoint import from_arrays
        from gymnasium_solver.train.session import train

        config = load_config(ref, overrides)
        run = train(config, runs_dir=tmp_path / "runs", command=["test"], report=False)
        spec = describe(config)
        algorithm = make_algorithm(config, spec)
        arrays, _ = run.read_checkpoint("last")
        state = from_arrays(algorithm.init(np.random.default_rng(0)), arrays, "last")
        return Fitted(run, algorithm, state, spec.obs_sizes)

    return fit
