"""Ids that do not exist, extras that are missing, environments that go wrong: one sentence each, with the remedy."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import VectorEngine, describe, probes
from gymnasium_solver.errors import ConfigError, EnvironmentFault, MissingExtraError, NotFoundError

Make = Callable[..., VectorEngine]
Configure = Callable[..., PPOConfig]


@pytest.mark.parametrize(
    ("env_id", "nearest"),
    [
        ("CartPoll-v1", "CartPole-v1"),
        ("CartPole-v9", "CartPole-v1"),
        ("LunarLander-v2", "LunarLander-v3"),
        ("ALE/Pongg-v5", "ALE/Pong-v5"),
    ],
)
def test_unknown_id_names_the_nearest(env_id: str, nearest: str, config: Configure) -> None:
    with pytest.raises(NotFoundError, match=f"{env_id}.*nearest is '{nearest}'"):
        describe(config(env_id))


def test_gymnasiums_own_form_with_a_module(config: Configure) -> None:
    assert describe(config("minigrid:MiniGrid-Empty-8x8-v0")).obs_shape == (151,)
    with pytest.raises(NotFoundError, match="nearest"):
        describe(config("minigrid:MiniGrid-Emty-8x8-v0"))


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("no_such_module:Thing", "no module 'no_such_module'"),
        (
            "sample_environments:NOT_AN_ENVIRONMENT",
            "is the class dict, not a gymnasium.Env or a pure environment .*; it was not called",
        ),
        ("sample_environments.py:Clock", r"'sample_environments.py' is a file, .*; write sample_environments:Class"),
        ("./sub/envs.py:Clock", "write sub.envs:Class"),
        ("sample_environments:NoObservationSpace", r"Gymnasium space as its observation_space, and has none; .*Box\("),
        ("sample_environments:NoActionSpace", r"Gymnasium space as its action_space, and has a int; .*Discrete\("),
    ],
)
def test_a_class_that_is_not_there(env_id: str, message: str, config: Configure) -> None:
    with pytest.raises(ConfigError, match=message):
        describe(config(env_id))


def test_a_class_that_its_module_does_not_have(config: Configure) -> None:
    with pytest.raises(NotFoundError, match="module 'sample_environments' has no 'Clok'") as caught:
        describe(config("sample_environments:Clok"))
    assert "AnySpace, Clock, Masked" in str(caught.value), "what it has"
    assert str(caught.value).endswith("did you mean 'Clock'?")


def test_arguments_the_environment_does_not_take(config: Configure) -> None:
    with pytest.raises(ConfigError, match=r"env_kwargs: .*continous.*LunarLander-v3"):
        describe(config("LunarLander-v3", env_kwargs={"continous": True}))
    with pytest.raises(EnvironmentFault, match="cannot be made"):
        describe(config("AnySpace", env_kwargs={"observation": "unheard of"}))


@pytest.mark.parametrize(
    ("env_id", "module", "extra"),
    [
        ("ALE/Pong-v5", "ale_py", "atari"),
        ("MiniGrid-Empty-5x5-v0", "minigrid", "minigrid"),
        ("LunarLander-v3", "Box2D", "box2d"),
        ("HalfCheetah-v5", "mujoco", "mujoco"),
    ],
)
def test_missing_extra(
    env_id: str, module: str, extra: str, config: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.split(".")[0] == module or name.startswith(f"gymnasium.envs.{extra}"):
            monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name, *rest, **named)

    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=rf"{env_id} needs the \[{extra}\] extra"):
        describe(config(env_id))


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raises", r"failed in step\(\): RuntimeError: the motor is on fire \(at sample_environments\.py:\d+\)"),
        ("shape", r"expected an observation of shape \(3,\).*got shape \(4,\)"),
        ("scalar", r"expected an observation of shape \(3,\).*got shape \(\)"),
        ("type", r"expected an observation of shape \(3,\) \(numbers\), got shape \(3,\) \(<U1\)"),
        ("reward", "could not convert string to float"),
    ],
)
def test_an_environment_that_goes_wrong(how: str, message: str, vectorization: str, engine: Make) -> None:
    if vectorization == "async" and how not in ("raises", "shape"):
        pytest.skip("the same code in another process")
    made = engine("Faulty", 3, env_kwargs={"how": how}, vectorization=vectorization)
    made.reset(0)
    with pytest.raises(EnvironmentFault, match=rf"sample_environments:Faulty \(number 0\).*{message}"):
        for _ in range(60):
            made.step(np.zeros(3, np.int32))


def test_a_worker_process_that_dies(engine: Make) -> None:
    made = engine("Faulty", 2, env_kwargs={"how": "dies"}, vectorization="async")
    made.reset(0)
    with pytest.raises(EnvironmentFault, match=r"numbers 0 to \d\).*died with exit code 7"):
        for _ in range(60):
            made.step(np.zeros(2, np.int32))


def test_a_native_vector_class_that_is_given_nonsense(engine: Make) -> None:
    made = engine("CartPole-v1", 2, vectorization="native")
    made.reset(0)
    with pytest.raises(EnvironmentFault, match=r"CartPole-v1 \(vector class\) failed in step\(\)"):
        made.step(np.array([0, 7], np.int32))


def test_the_environment_that_the_docs_show(config: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n# myenvs.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "documented_environment.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    spec = describe(config("documented_environment:Corridor", env_kwargs={"length": 3}, max_episode_steps=100))
    assert (spec.obs_shape, spec.max_episode_steps) == ((1,), 100)


# --- probes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "ConstantReward",
        "ObservationReward",
        "DelayedReward",
        "ActionReward",
        "ObservationActionReward",
        "EndlessReward",
        "ContinuousAction",
        "ContinuousObservationAction",
        "MaskedAction",
    ],
)
def test_probes_build_and_document_their_answer(name: str, engine: Make) -> None:
    made = engine(f"gymnasium_solver.envs.probes:{name}", 4)
    assert "Answer:" in (getattr(probes, name).__doc__ or "")
    assert made.reset(0)[0].shape == (4, 1)
    assert made.spec.has_action_mask == (name == "MaskedAction")


def test_the_endless_probe_is_cut_and_never_ends(engine: Make) -> None:
    made = engine("gymnasium_solver.envs.probes:EndlessReward", 1, env_kwargs={"limit": 3})
    made.reset(0)
    flags = []
    for _ in range(4):
        step = made.step(np.zeros(1, np.int32))
        flags.append((step.terminated[0], step.truncated[0], step.reward[0]))
    assert flags == [(False, False, 1), (False, False, 1), (False, True, 1), (False, False, 0)]


def test_the_continuous_probe_pays_most_at_its_answer(engine: Make) -> None:
    made = engine("gymnasium_solver.envs.probes:ContinuousObservationAction", 64)
    shown = made.reset(0)[0].copy()
    np.testing.assert_allclose(made.step(shown / 2).reward, 1.0)  # half the shown sign, before scaling to ±2
