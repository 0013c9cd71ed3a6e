"""Rollouts of environments whose every reward and ending is written down."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from gymnasium_solver.algorithms.interface import Column
from gymnasium_solver.envs.engine import Step
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.train.parts import Columns, Episode
from gymnasium_solver.train.source import ACTIONS, HostSource, empty_columns, require_finite

RESET_REWARD = 99.0  # engines pay 0; whoever counted reset steps would be found out by this
N_STEPS = 4


class Script(NamedTuple):
    rewards: list[float]
    truncated: bool = False


def spec_of(action: ActionSpec, has_action_mask: bool = False) -> EnvSpec:
    return EnvSpec(
        env_id="Scripted-v0",
        obs_shape=(4,),
        obs_dtype=np.dtype(np.float32),
        is_image=False,
        action=action,
        max_episode_steps=None,
        reward_threshold=None,
        has_action_mask=has_action_mask,
        engine="gymnasium/sync",
        reason="scripted",
    )


class ScriptedEngine:
    """Each environment plays its episodes in turn. It observes (seed, episode, step, sum of actions so far).

    Ends are next-step resets, and the arrays are the engine's own, overwritten by every step.
    """

    def __init__(self, *scripts: list[Script], has_action_mask: bool = False) -> None:
        self.scripts, self.n_envs = scripts, len(scripts)
        self.spec = spec_of(ActionSpec("discrete", (100,), 1), has_action_mask)
        mask = np.zeros((self.n_envs, 100), bool) if has_action_mask else None
        rewards, flags = np.zeros(self.n_envs, np.float32), np.zeros((2, self.n_envs), bool)
        self._step = Step(np.zeros((self.n_envs, 4), np.float32), rewards, flags[0], flags[1], mask)

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        self._step.obs[:] = [seed, 0, 0, 0]
        self._done = np.zeros(self.n_envs, bool)
        self._allow()
        return self._step.obs, self._step.action_mask

    def step(self, action: np.ndarray) -> Step:
        for i, script in enumerate(self.scripts):
            self._step_one(i, script, action[i])
        self._done = self._step.terminated | self._step.truncated
        self._allow()
        return self._step

    def close(self) -> None: ...

    def _step_one(self, i: int, script: list[Script], action: int) -> None:
        step, obs = self._step, self._step.obs[i]
        step.terminated[i] = step.truncated[i] = False
        if self._done[i]:
            obs[1], obs[2] = obs[1] + 1, 0
            step.reward[i] = RESET_REWARD
            return
        episode = script[int(obs[1]) % len(script)]
        step.reward[i] = episode.rewards[int(obs[2])]
        obs[2], obs[3] = obs[2] + 1, obs[3] + action
        if obs[2] == len(episode.rewards):
            (step.truncated if episode.truncated else step.terminated)[i] = True

    def _allow(self) -> None:
        """Step k of an episode allows action k only."""
        if self._step.action_mask is not None:
            self._step.action_mask[:] = np.arange(100) == self._step.obs[:, 2:3]


def act_on_noise(actor: Any, carry: Any, obs: np.ndarray, noise: np.ndarray, mask: np.ndarray | None) -> Any:
    return (actor + noise).astype(np.int32), carry, {}


WITHOUT_MEMORY: Any = SimpleNamespace(begin=lambda n: (), columns={})


def source_over(engine: Any, act: Any, seed: int = 7, algorithm: Any = WITHOUT_MEMORY) -> HostSource:
    return HostSource(engine, algorithm, act, N_STEPS, seed)


def source_of(*scripts: list[Script], seed: int = 7) -> HostSource:
    return source_over(ScriptedEngine(*scripts), act_on_noise, seed)


def collect(source: HostSource, actor: int = 0) -> tuple[Columns, list[Episode]]:
    noise = np.arange(N_STEPS * source.engine.n_envs).reshape(N_STEPS, -1)
    columns = source.advance(actor, noise, 0, N_STEPS).columns
    ended = source.ended()
    source.keep()
    return {name: values.copy() for name, values in columns.items()}, ended


SHORT = [Script([1, 2]), Script([3, 4, 5], truncated=True)]
ALIGNED = [Script([10, 20, 30, 40], truncated=True)]  # ends with the rollout
LONG = [Script([1, 2, 4, 8, 16, 32, 64, 128, 256])]  # spans three rollouts


# The batch


def test_a_batch_holds_what_the_environment_gave() -> None:
    batch, _ = collect(source_of(SHORT), actor=5)
    np.testing.assert_array_equal(batch["action"][:, 0], [5, 6, 7, 8])
    np.testing.assert_array_equal(batch["reward"][:, 0], [1, 2, RESET_REWARD, 3])
    np.testing.assert_array_equal(batch["terminated"][:, 0], [False, True, False, False])
    np.testing.assert_array_equal(batch["truncated"][:, 0], [False] * 4)
    # seed, episode, step, sum of the actions; the action of the reset step (7) is ignored
    expected = [[7, 0, 0, 0], [7, 0, 1, 5], [7, 0, 2, 11], [7, 1, 0, 11], [7, 1, 1, 19]]
    np.testing.assert_array_equal(batch["obs"][:, 0], expected)


def test_the_next_batch_begins_where_the_last_one_ended() -> None:
    source = source_of(SHORT, ALIGNED, LONG)
    first, _ = collect(source)
    second, _ = collect(source)
    np.testing.assert_array_equal(second["obs"][0], first["obs"][-1])
    np.testing.assert_array_equal(second["reward"][:, 0], [4, 5, RESET_REWARD, 1])
    np.testing.assert_array_equal(second["truncated"][:, 0], [False, True, False, False])
    np.testing.assert_array_equal(second["terminated"][:, 0], [False] * 4)


def test_each_environment_has_its_own_column() -> None:
    batch, _ = collect(source_of(SHORT, ALIGNED, LONG))
    np.testing.assert_array_equal(batch["reward"][0], [1, 10, 1])
    np.testing.assert_array_equal(batch["action"][1], [3, 4, 5])
    np.testing.assert_array_equal(batch["obs"][1, :, 3], [0, 1, 2])


def test_the_policy_sees_the_actor_the_observation_and_its_noise() -> None:
    seen = []

    def act(actor: Any, carry: Any, obs: np.ndarray, noise: np.ndarray, mask: np.ndarray | None) -> Any:
        seen.append((actor, obs[:, 1:3].tolist(), noise.tolist(), mask))
        return np.zeros(1, np.int32), carry, {}

    source_over(ScriptedEngine(SHORT), act).advance("actor", np.arange(4.0)[:, None], 0, N_STEPS)
    steps = [[[0, 0]], [[0, 1]], [[0, 2]], [[1, 0]]]
    assert seen == [("actor", obs, [float(t)], None) for t, obs in enumerate(steps)]


def test_masks_are_seen_by_the_policy_and_kept_with_their_step() -> None:
    def first_allowed(actor: Any, carry: Any, obs: np.ndarray, noise: np.ndarray, mask: np.ndarray) -> Any:
        return mask.argmax(axis=1).astype(np.int32), carry, {}

    source = source_over(ScriptedEngine(SHORT, has_action_mask=True), first_allowed)
    batch, _ = collect(source)
    np.testing.assert_array_equal(batch["action"][:, 0], [0, 1, 2, 0])
    np.testing.assert_array_equal(batch["action_mask"].argmax(axis=2)[:, 0], [0, 1, 2, 0])
    np.testing.assert_array_equal(batch["action_mask"].sum(axis=2), 1)


@pytest.mark.parametrize(
    ("action", "shape", "dtype"),
    [
        (ActionSpec("discrete", (3,), 1), (5, 2), np.int32),
        (ActionSpec("multi_discrete", (3, 2), 2), (5, 2, 2), np.int32),
        (ActionSpec("box", (), 3), (5, 2, 3), np.float32),
    ],
)
def test_an_empty_batch_has_the_shapes_of_the_environment(
    action: ActionSpec, shape: tuple[int, ...], dtype: type
) -> None:
    batch = empty_columns(spec_of(action), {}, 2, 5)
    assert (batch["action"].shape, batch["action"].dtype) == (shape, dtype)
    assert (batch["obs"].shape, batch["obs"].dtype) == ((6, 2, 4), np.float32)
    assert "action_mask" not in batch


def test_an_empty_batch_forbids_no_action() -> None:
    batch = empty_columns(spec_of(ActionSpec("multi_discrete", (3, 2), 2), has_action_mask=True), {}, 2, 5)
    assert batch["action_mask"].shape == (5, 2, 5)
    assert batch["action_mask"].all()


# Which steps are resets


def test_the_step_after_an_ending_is_not_valid() -> None:
    batch, _ = collect(source_of(SHORT, LONG))
    np.testing.assert_array_equal(batch["valid"].T, [[True, True, False, True], [True] * 4])


def test_an_ending_in_the_last_step_makes_the_next_rollout_begin_with_a_reset() -> None:
    source = source_of(ALIGNED, LONG)
    first, _ = collect(source)
    second, _ = collect(source)
    third, _ = collect(source)
    assert first["valid"].all()
    np.testing.assert_array_equal(second["valid"].T, [[False, True, True, True], [True] * 4])
    np.testing.assert_array_equal(third["valid"].T, [[True, False, True, True], [True, False, True, True]])


# Episodes


def test_return_and_length_of_the_episodes_that_ended() -> None:
    _, ended = collect(source_of(SHORT, ALIGNED))
    assert ended == [(3.0, 2), (100.0, 4)]  # in order of time


def test_several_episodes_of_one_environment_in_one_rollout() -> None:
    _, ended = collect(source_of([Script([5]), Script([7])]))
    assert ended == [(5.0, 1), (7.0, 1)]  # steps 0 and 2; 1 and 3 are resets


def test_an_episode_goes_on_over_rollouts() -> None:
    source = source_of(LONG, SHORT)
    assert [collect(source)[1] for _ in range(3)] == [[(3.0, 2)], [(12.0, 3)], [(511.0, 9), (3.0, 2)]]


def test_reset_steps_count_neither_reward_nor_length() -> None:
    source = source_of(ALIGNED, [Script([1])])
    ended = [episode for _ in range(5) for episode in collect(source)[1]]
    assert {episode for episode in ended if episode[0] > 50} == {(100.0, 4)}
    assert {episode for episode in ended if episode[0] < 50} == {(1.0, 1)}


def test_every_valid_step_belongs_to_one_episode() -> None:
    source = source_of(SHORT, ALIGNED, LONG)
    valid, rewards, length, total = 0, 0.0, 0, 0.0
    for _ in range(35):  # 140 steps: whole rounds of 7, 5 and 10 steps with resets, so no episode is in flight
        batch, ended = collect(source)
        valid += int(batch["valid"].sum())
        rewards += float(batch["reward"][batch["valid"]].sum())
        length += sum(steps for _, steps in ended)
        total += sum(episode_return for episode_return, _ in ended)
    assert (length, total) == (valid, rewards)


# Starting over


def test_a_restart_forgets_the_episodes_in_flight() -> None:
    source = source_of(LONG)
    collect(source)
    source.restart(8)
    assert [collect(source)[1] for _ in range(3)] == [[], [], [(511.0, 9)]]


def test_a_restart_forgets_a_pending_reset() -> None:
    source = source_of(ALIGNED)
    collect(source)
    source.restart(8)
    batch, ended = collect(source)
    assert batch["valid"].all()
    assert ended == [(100.0, 4)]


def test_a_restart_passes_its_seed_on() -> None:
    source = source_of(LONG, seed=7)
    assert collect(source)[0]["obs"][0, 0, 0] == 7
    source.restart(8)
    assert collect(source)[0]["obs"][0, 0, 0] == 8


def test_actions_are_kept_since_the_restart_only() -> None:
    source = source_of(SHORT)
    collect(source, actor=1)
    source.restart(8)
    for actor in (2, 3):
        collect(source, actor)
    kept = source.snapshot()[ACTIONS]
    np.testing.assert_array_equal(kept[:, 0], [2, 3, 4, 5, 3, 4, 5, 6])


def test_actions_of_a_rollout_that_was_not_learnt_from_are_not_kept() -> None:
    source = source_of(SHORT)
    noise = np.zeros((N_STEPS, 1), np.int64)
    source.advance(1, noise, 0, N_STEPS)
    assert not source.snapshot()


@pytest.mark.parametrize("rollouts", [1, 2, 3])
def test_replay_leads_to_the_state_that_was_left(rollouts: int) -> None:
    scripts = (SHORT, ALIGNED, LONG)
    left, fresh, replayed = (source_of(*scripts) for _ in range(3))
    for actor in range(1, rollouts + 1):
        collect(left, actor)
    replayed.restore(left.snapshot())
    np.testing.assert_array_equal(replayed.snapshot()[ACTIONS], left.snapshot()[ACTIONS])
    differs = False
    for actor in (4, 5, 6):  # episodes in flight end here, with counters from before
        (expected, ended), (batch, replayed_ended) = collect(left, actor), collect(replayed, actor)
        assert replayed_ended == ended
        for name, values in expected.items():
            np.testing.assert_array_equal(batch[name], values, err_msg=name)
        other, other_ended = collect(fresh, actor)
        differs |= other_ended != ended and not np.array_equal(other["obs"], expected["obs"])
    assert differs, "without replay nothing would be missing: the test shows nothing"


def test_replay_after_a_restart_leads_there_too() -> None:
    left, replayed = source_of(LONG), source_of(LONG, seed=8)
    collect(left, 1)
    left.restart(8)
    collect(left, 2)
    replayed.restore(left.snapshot())
    expected, batch = collect(left, 3)[0], collect(replayed, 3)[0]
    np.testing.assert_array_equal(batch["obs"], expected["obs"])


# What is no number


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_with_its_place(bad: float) -> None:
    obs = np.zeros((4, 3, 2), np.float32)
    obs[2, 1, 1] = bad
    obs[3, 0, 0] = bad
    with pytest.raises(EnvironmentFault, match=r"Mine-v0 .* obs .*environment 1, step 2 ") as caught:
        require_finite("obs", obs, "Mine-v0")
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_reward_that_is_not_finite_is_named_with_its_place() -> None:
    reward = np.zeros((4, 3), np.float32)
    reward[3, 2] = np.nan
    with pytest.raises(EnvironmentFault, match=r"reward .*environment 2, step 3 "):
        require_finite("reward", reward, "Mine-v0")


@pytest.mark.parametrize("values", [np.zeros((2, 2), np.float32), np.full((2, 2, 3), 255, np.uint8)])
def test_finite_values_pass(values: np.ndarray) -> None:
    require_finite("obs", values, "Mine-v0")


def test_episodes_are_told_in_what_the_environment_paid() -> None:
    engine = ScriptedEngine([Script([1, 2])])
    engine.spec = replace(engine.spec, changes_reward=True)
    step = engine.step
    # As behind a reward_clip of 1: the learner's rewards are smaller than those that were paid.
    engine.step = lambda action: (  # type: ignore[method-assign]
        (made := step(action))._replace(reward=np.minimum(made.reward, 1), own_reward=made.reward)
    )
    source = source_over(engine, lambda *_: (np.zeros(1, np.int32), (), {}))
    columns = source.advance({}, np.zeros(N_STEPS), 0, N_STEPS).columns
    assert source.ended()[0] == (3.0, 2)
    assert columns["reward"][:2, 0].tolist() == [1, 1]


# Memory, and what acting records


def remembering() -> Any:
    """A policy that counts the observations of its episode, and records what it counted to."""
    return SimpleNamespace(begin=lambda n: np.zeros(n, np.int32), columns={"count": Column((), np.int32)})


def count(actor: Any, carry: np.ndarray, obs: np.ndarray, noise: np.ndarray, mask: Any) -> Any:
    return np.zeros(len(obs), np.int32), carry + 1, {"count": carry}


def test_memory_begins_anew_with_every_episode() -> None:
    source = source_over(ScriptedEngine(SHORT, LONG), count, algorithm=remembering())
    first = source.advance(None, np.zeros(N_STEPS), 0, N_STEPS).columns["count"].T.tolist()
    # SHORT ends after two steps: its final observation is seen in the reset step, the next episode begins after it.
    assert first == [[0, 1, 2, 0], [0, 1, 2, 3]]
    assert source.advance(None, np.zeros(N_STEPS), 0, N_STEPS).columns["count"].T.tolist()[1] == [4, 5, 6, 7]


def test_memory_is_part_of_a_snapshot() -> None:
    left, resumed = (source_over(ScriptedEngine(LONG), count, algorithm=remembering()) for _ in range(2))
    collect(left)
    resumed.restore(left.snapshot())
    np.testing.assert_array_equal(collect(resumed)[0]["count"], collect(left)[0]["count"])


def test_memory_of_a_rollout_that_broke_off_is_not_part_of_a_snapshot() -> None:
    left, resumed = (source_over(ScriptedEngine(LONG), count, algorithm=remembering()) for _ in range(2))
    collect(left)
    left.advance(None, np.zeros(N_STEPS), 0, 2)
    resumed.restore(left.snapshot())
    assert collect(resumed)[0]["count"][:, 0].tolist() == [4, 5, 6, 7]
