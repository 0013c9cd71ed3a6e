"""Pure probes do what the probes on the host do, so that the same answers hold."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import probes as host_probes
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.envs.compiled import probes

PURE = [name for name, value in vars(probes).items() if inspect.isclass(value) and hasattr(value, "reward")]
NAMES = [name for name in PURE if not name.startswith("_")]
EPISODES = 40


def built(module: Any, name: str, **arguments: Any) -> gym.Env:
    return build_env(PPOConfig(env_id=f"{module.__name__}:{name}", env_kwargs=arguments))


def episodes(env: gym.Env) -> dict[tuple[Any, ...], set[tuple[Any, ...]]]:
    """From the observations and actions of an episode to what came of them."""
    rng, found = np.random.default_rng(0), {}
    for seed in range(EPISODES):
        obs, _ = env.reset(seed=seed)
        case, outcome, over = [np.ravel(obs)[0].item()], [], False
        while not over:
            discrete = isinstance(env.action_space, gym.spaces.Discrete)
            action = rng.integers(env.action_space.n) if discrete else np.round(rng.uniform(-2, 2, 1), 0).astype("f4")
            obs, reward, terminated, truncated, _ = env.step(action)
            case.append(np.ravel(action)[0].item())
            outcome.append((np.ravel(obs)[0].item(), round(float(reward), 5), bool(terminated), bool(truncated)))
            over = terminated or truncated
        found.setdefault(tuple(case), set()).add(tuple(outcome))
    env.close()
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Bandit"])
def test_the_same_actions_lead_to_the_same_outcomes(name: str) -> None:
    arguments = {"limit": 3} if name == "EndlessReward" else {}
    pure, host = built(probes, name, **arguments), built(host_probes, name, **arguments)
    assert (pure.observation_space, pure.action_space) == (host.observation_space, host.action_space)
    got, want = episodes(pure), episodes(host)
    both = got.keys() & want.keys()
    assert both and all(len(got[case]) == 1 and got[case] == want[case] for case in both)
    assert {case[0] for case in got} == {case[0] for case in want}, "the same first observations are shown"


def test_the_bandit_pays_the_same() -> None:
    pure, host = built(probes, "Bandit"), built(host_probes, "Bandit")
    assert (pure.observation_space, pure.action_space) == (host.observation_space, host.action_space)
    for arm, mean in enumerate(host_probes.Bandit.means):
        paid = []
        for seed in range(400):
            pure.reset(seed=seed)
            _, reward, terminated, _, _ = pure.step(arm)
            paid.append(reward)
            assert terminated
        assert abs(np.mean(paid) - mean) < 4 * 0.3 / 20
        assert 0.25 < np.std(paid) < 0.35


def test_none_is_forgotten() -> None:
    on_host = {
        name for name, value in vars(host_probes).items() if inspect.isclass(value) and issubclass(value, gym.Env)
    }
    assert {*NAMES, "MaskedAction"} == {name for name in on_host if not name.startswith("_")}


def test_what_wrappers_do_on_the_host_is_an_argument() -> None:
    env = built(probes, "ObservationReward", as_kind=True, any_action=True)
    assert env.observation_space == gym.spaces.Discrete(3)
    assert env.action_space == gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert {env.reset(seed=seed)[0] for seed in range(20)} == {0, 2}
