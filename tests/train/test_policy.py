"""From a run to actions: one observation or many, on the environment's own terms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import describe
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.train.judge import evaluate_checkpoint
from gymnasium_solver.train.policy import EnvironmentPolicy, Policy
from gymnasium_solver.train.session import train

pytestmark = pytest.mark.integration
SHORT = {"n_envs": 4, "n_steps": 32, "eval_episodes": 2, "max_env_steps": 512, "checkpoint_freq_epochs": 2}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    directory = tmp_path_factory.mktemp("policies")
    ppo = {**SHORT, "batch_size": 64, "n_epochs": 1}
    refs = {"CartPole-v1:ppo": ppo, "Pendulum-v1:ppo": ppo, "FrozenLake-v1:q_learning": SHORT}
    return {
        ref.partition(":")[0]: train(load_config(ref, fields), runs_dir=directory, command=[], report=False)
        for ref, fields in refs.items()
    }


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1"])
def test_one_observation_or_a_batch_of_them(env_id: str, runs: dict[str, Run]) -> None:
    policy, env = runs[env_id].policy("best"), gymnasium.make(env_id)
    seen = [env.observation_space.sample() for _ in range(3)]
    actions = [policy(obs) for obs in seen]
    assert all(env.action_space.contains(action) for action in actions)
    np.testing.assert_allclose(np.stack(actions), policy(np.stack(seen)), rtol=1e-6)
    assert np.shape(policy(np.stack(seen[:1]))) == np.shape(actions[:1]), "a batch of one is a batch"


def test_it_plays_as_an_evaluation_does(runs: dict[str, Run]) -> None:
    policy, returns = runs["Pendulum-v1"].policy("@best"), []
    env = gymnasium.make("Pendulum-v1")
    for seed in range(20):
        (obs, _), total, ended = env.reset(seed=seed), 0.0, False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(policy(obs))
            total, ended = total + float(reward), terminated or truncated
        returns.append(total)
    evaluated = evaluate_checkpoint(runs["Pendulum-v1"], "best", episodes=20, deterministic=True).returns
    spread = np.hypot(np.std(returns), evaluated.std()) / np.sqrt(20)
    assert abs(np.mean(returns) - evaluated.mean()) < 4 * spread, "unscaled actions would fall far behind"


def test_a_generator_makes_it_draw(runs: dict[str, Run]) -> None:
    policy, obs = runs["CartPole-v1"].policy(), np.zeros((200, 4), np.float32)
    drawn = policy(obs, rng=np.random.default_rng(0))
    assert 0 < drawn.mean() < 1 and len(set(policy(obs))) == 1
    np.testing.assert_array_equal(drawn, policy(obs, rng=np.random.default_rng(0)))


def test_a_checkpoint_that_is_not_there_is_named(runs: dict[str, Run]) -> None:
    with pytest.raises(NotFoundError, match="has no checkpoint 'epoch=77'; there are last, best, epoch="):
        runs["CartPole-v1"].policy("epoch=77")


class Chooser(gymnasium.Env):
    """Observes a colour and a place. Its mask forbids the action that is the colour."""

    observation_space = gymnasium.spaces.Dict(
        {"colour": gymnasium.spaces.Discrete(2), "place": gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3)])}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return {"colour": 0, "place": (1,)}, {"action_mask": np.array([0, 1], np.int8)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return *self.reset()[:1], 1.0, True, False, {"action_mask": np.array([0, 1], np.int8)}


def masked_policy() -> EnvironmentPolicy:
    """Takes the first action that is allowed."""
    config = load_config("CartPole-v1:ppo", {"env_id": f"{__name__}:Chooser"})
    greedy = lambda actor, carry, obs, mask: (mask.argmax(axis=1), carry)  # noqa: E731
    algorithm: Any = SimpleNamespace(begin=lambda n: ())
    return EnvironmentPolicy(Policy(config, describe(config), None, greedy, greedy, algorithm))


def test_masks_come_as_the_environment_gives_them_one_or_a_batch() -> None:
    policy, one = masked_policy(), {"colour": 0, "place": (1,)}
    assert policy(one) == 0 and policy(one, np.array([0, 1])) == 1
    batch = {"colour": np.array([0, 1, 1]), "place": (np.array([1, 2, 0]),)}
    assert policy(batch, np.array([[0, 1], [1, 0], [0, 1]])).tolist() == [1, 0, 1]
    assert policy(batch).tolist() == [0, 0, 0]
    assert policy({"colour": np.array([0]), "place": (np.array([1]),)}, np.array([[0, 1]])).tolist() == [1]


def test_an_observation_of_another_space_is_refused() -> None:
    with pytest.raises(ValueError, match="expected an observation with 'colour', got shape"):
        masked_policy()(np.zeros(4))


def counting_policy() -> Policy:
    """Its action is how many observations of the episode it has seen."""
    config = load_config("CartPole-v1:ppo")
    algorithm: Any = SimpleNamespace(begin=lambda n: np.zeros(n, np.int32))
    greedy = lambda actor, carry, obs, mask: (carry, carry + 1)  # noqa: E731
    return Policy(config, describe(config), None, greedy, greedy, algorithm)


def test_a_policy_remembers_its_episodes_by_itself() -> None:
    policy, obs = counting_policy(), np.zeros((2, 4), np.float32)
    assert [policy(obs).tolist() for _ in range(2)] == [[0, 0], [1, 1]]
    assert policy(obs, started=np.array([True, False])).tolist() == [0, 2]
    assert policy(obs[0]) == 0, "another number of episodes is another set of them"
    assert policy(obs[0]) == 1
    policy.reset()
    assert policy(obs[0]) == 0


def test_policies_are_restored_in_one_place() -> None:
    root = Path(__file__).parents[2] / "gymnasium_solver"
    restoring = [p for p in root.rglob("*.py") if "from_arrays(" in p.read_text() and p.parent.name != "train"]
    assert not restoring
