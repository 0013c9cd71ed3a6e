"""What is sampled from a replay is what was stored: against a history that is never overwritten."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation

from gymnasium_solver.data.layout import Layout, gather, make_layout, rows_for
from gymnasium_solver.data.priorities import Priorities
from gymnasium_solver.data.replay import Replay
from gymnasium_solver.data.storage import AcceleratorStorage, HostStorage
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.errors import ConfigError

GAMMA = 0.9
DISCRETE = ActionSpec("discrete", (5,), 1)
Batch = dict[str, np.ndarray]


def make_spec(obs_shape: tuple[int, ...] = (3,), action: ActionSpec = DISCRETE, *, mask: bool = False) -> EnvSpec:
    is_image = len(obs_shape) == 3
    dtype = np.dtype(np.uint8 if is_image else np.float32)
    return EnvSpec("Fake-v0", obs_shape, dtype, is_image, action, None, None, mask, "fake", "test")


class History:
    """Random episodes as a collector would write them, kept whole: row t of every environment at index t.

    The observation is (time, environment, episode), so that what comes out of a replay says where it belongs.
    """

    def __init__(self, seed: int, n_envs: int, action: ActionSpec = DISCRETE, *, ends: float = 0.25) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_envs, self.action, self.ends = n_envs, action, ends
        self.rows: list[Batch] = []
        self.resetting = np.zeros(n_envs, bool)
        self.episode = np.zeros(n_envs, np.int64)
        self.cuts: set[int] = set()  # times of rows that only waited: the environments began anew there
        self.standing = self._stand()

    def _stand(self) -> Batch:
        time = np.full(self.n_envs, len(self.rows))
        obs = np.stack([time, np.arange(self.n_envs), self.episode], axis=-1).astype(np.float32)
        mask = self.rng.random((self.n_envs, sum(self.action.sizes))) < 0.5
        return {"obs": obs, "action_mask": mask}

    def step(self) -> None:
        valid = ~self.resetting
        terminated = valid & (self.rng.random(self.n_envs) < self.ends / 2)
        truncated = valid & ~terminated & (self.rng.random(self.n_envs) < self.ends / 2)
        if self.action.kind == "box":
            action = self.rng.uniform(-1, 1, (self.n_envs, self.action.dim)).astype(np.float32)
        else:
            action = self.rng.integers(0, self.action.sizes[0], self.n_envs).astype(np.int32)
        self.rows.append(
            self.standing
            | {
                "action": action,
                # What a reset step brings is not nothing here: it must never count.
                "reward": np.where(valid, self.rng.normal(size=self.n_envs), 1e6).astype(np.float32),
                "terminated": terminated,
                "truncated": truncated,
                "valid": valid,
            }
        )
        self.episode += self.resetting
        self.resetting = terminated | truncated
        self.standing = self._stand()

    def cut(self) -> None:
        newest = self.rows[-1]
        newest["truncated"] = newest["valid"] & ~newest["terminated"]
        nothing = np.zeros(self.n_envs, bool)
        self.cuts.add(len(self.rows))
        waiting = {name: np.zeros_like(newest[name]) for name in ("action", "reward")}
        self.rows.append(self.standing | waiting | dict.fromkeys(("terminated", "truncated", "valid"), nothing))
        self.episode += 1
        self.resetting = nothing.copy()
        self.standing = self._stand()

    def batch(self, n: int) -> Batch:
        """The last n rows, and the observation after them."""
        rows = self.rows[-n:]
        stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        stacked["obs"] = np.concatenate([stacked["obs"], self.standing["obs"][None]])
        return stacked

    def state_at(self, time: int) -> Batch:
        return self.rows[time] if time < len(self.rows) else self.standing

    def transition(self, time: int, env: int, n_step: int) -> tuple[float, float, int]:
        """Reward, discount and successor's time of the n-step transition from there, the slow way."""
        total, discount = 0.0, 1.0
        for row in self.rows[time : time + n_step]:
            total += discount * float(row["reward"][env])
            discount *= GAMMA
            time += 1
            if row["terminated"][env]:
                return total, 0.0, time
            if row["truncated"][env]:
                break
        return total, discount, time


def make_replay(
    spec: EnvSpec, rows: int, n_envs: int, *, n_step: int = 1, frame_stack: int = 1, prioritized: bool = False,
    storage: Any = HostStorage,
) -> Replay:  # fmt: skip
    layout = make_layout(spec, rows=rows, n_envs=n_envs, frame_stack=frame_stack, n_step=n_step, gamma=GAMMA)
    priorities = Priorities(rows * n_envs, alpha=0.6, eps=1e-6) if prioritized else None
    return Replay(layout, storage(layout), priorities)


def advance(history: History, replay: Replay, n: int, *, pad: int = 0) -> None:
    """n steps into both; `pad` rows stand before them in the batch, as the collector's earlier ones do."""
    for _ in range(n):
        history.step()
    batch = history.batch(n)
    if pad:
        batch = {name: np.concatenate([np.zeros_like(rows[:1])] * pad + [rows]) for name, rows in batch.items()}
    mask = history.standing["action_mask"] if "action_mask" in replay.layout.columns else None
    replay.add(batch, pad, pad + n, mask)


def everything(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
    """Slots and environments of all that may be sampled, each once."""
    times = np.arange(*replay.window)
    slots = (times % replay.layout.rows).astype(np.int32)
    grid = np.meshgrid(slots, np.arange(replay.layout.n_envs, dtype=np.int32), indexing="ij")
    valid = replay._valid[grid[0], grid[1]]
    return grid[0][valid], grid[1][valid]


def read(replay: Replay, slots: np.ndarray, envs: np.ndarray) -> Batch:
    """As NumPy reads host memory, or inside a compiled function where JAX holds the rows."""
    arrays, layout = replay.storage.arrays, replay.layout
    if isinstance(replay.storage, HostStorage):
        return gather(arrays, slots, envs, layout, np)
    compiled = jax.jit(lambda arrays, slots, envs: gather(arrays, slots, envs, layout, jnp))
    return {name: np.asarray(rows) for name, rows in compiled(arrays, slots, envs).items()}


def check(history: History, replay: Replay, batch: Batch) -> set[tuple[int, int]]:
    """Every transition against the history; (time, environment) of those that were seen."""
    n_step, seen = replay.layout.n_step, set()
    for i, obs in enumerate(batch["obs"]):
        time, env = int(obs[0]), int(obs[1])
        start = history.rows[time]
        assert start["valid"][env], "a reset step teaches nothing"
        np.testing.assert_array_equal(obs, start["obs"][env])
        np.testing.assert_array_equal(batch["action"][i], start["action"][env])
        reward, discount, successor = history.transition(time, env, n_step)
        assert batch["reward"][i] == pytest.approx(reward, rel=1e-5, abs=1e-5)
        assert batch["discount"][i] == pytest.approx(discount, rel=1e-6)
        after = history.state_at(successor)
        np.testing.assert_array_equal(batch["next_obs"][i], after["obs"][env])
        assert batch["next_obs"][i][2] == obs[2], "the successor is of the same episode, its last one included"
        if "action_mask" in batch:
            np.testing.assert_array_equal(batch["action_mask"][i], start["action_mask"][env])
            np.testing.assert_array_equal(batch["next_action_mask"][i], after["action_mask"][env])
        seen.add((time, env))
    return seen


def expected(history: History, replay: Replay) -> set[tuple[int, int]]:
    """What the ring should offer: all steps of which the n rewards and the successor are still there."""
    now, layout = len(history.rows), replay.layout
    oldest = max(0, now - (layout.rows - 1))  # one row waits for its action
    times = range(oldest, now - layout.n_step + 1)
    return {(t, e) for t in times for e in range(layout.n_envs) if history.rows[t]["valid"][e]}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("n_step", [1, 3, 5])
def test_transitions_are_those_of_the_history(n_step: int, n_envs: int, seed: int) -> None:
    history = History(seed, n_envs)
    replay = make_replay(make_spec(), rows=23, n_envs=n_envs, n_step=n_step)
    sizes = np.random.default_rng(seed).integers(1, 9, 30)  # over four times round the ring, in pieces of any length
    assert sizes.sum() > 4 * 23
    for size in sizes:
        advance(history, replay, int(size))
        seen = check(history, replay, read(replay, *everything(replay)))
        assert seen == expected(history, replay)


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("n_step", [1, 3])
def test_draws_cover_all_there_is_and_nothing_else(n_step: int, prioritized: bool) -> None:
    history = History(7, 3)
    replay = make_replay(make_spec(), rows=12, n_envs=3, n_step=n_step, prioritized=prioritized)
    rng = np.random.default_rng(0)
    for size in (4, 3, 11, 5, 6, 7, 11):
        advance(history, replay, size)
        slots, envs, weight = replay.sample(rng, (20, 32), beta=0.5)
        assert slots.shape == envs.shape == weight.shape == (20, 32)
        seen = check(history, replay, read(replay, slots.ravel(), envs.ravel()))
        assert seen == expected(history, replay), "640 draws of at most 33 transitions meet them all"
        if prioritized:
            replay.prioritize(slots, envs, np.abs(rng.normal(size=slots.shape)) + 0.5)


def test_uniform_draws_are_uniform() -> None:
    history = History(1, 2)
    replay = make_replay(make_spec(), rows=20, n_envs=2)
    for _ in range(9):
        advance(history, replay, 4)
    slots, envs, weight = replay.sample(np.random.default_rng(0), (100, 300))
    counts = np.unique(slots * 2 + envs, return_counts=True)[1]
    assert len(counts) == len(expected(history, replay))
    mean = 30_000 / len(counts)
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)
    assert (weight == 1).all()
    assert slots.dtype == envs.dtype == np.int32


def test_rows_of_a_batch_before_start_are_left_alone() -> None:
    history = History(3, 2)
    replay = make_replay(make_spec(), rows=15, n_envs=2, n_step=3)
    for pad in (0, 3, 1, 5, 2, 4):
        advance(history, replay, 4, pad=pad)
    assert check(history, replay, read(replay, *everything(replay))) == expected(history, replay)


def test_a_block_may_fill_the_ring_but_for_one_row() -> None:
    history = History(3, 1, ends=0.0)
    replay = make_replay(make_spec(), rows=5, n_envs=1)
    for _ in range(3):
        advance(history, replay, 4)
    assert check(history, replay, read(replay, *everything(replay))) == {(t, 0) for t in range(8, 12)}


def test_box_actions_come_back_as_they_were() -> None:
    action = ActionSpec("box", (), 2, -np.ones(2, np.float32), np.ones(2, np.float32))
    history = History(5, 3, action)
    replay = make_replay(make_spec(action=action), rows=11, n_envs=3, n_step=3)
    for _ in range(8):
        advance(history, replay, 3)
    assert read(replay, *everything(replay))["action"].shape[1:] == (2,)
    assert check(history, replay, read(replay, *everything(replay))) == expected(history, replay)


def test_many_actions_need_more_than_a_byte() -> None:
    action = ActionSpec("discrete", (1000,), 1)
    history = History(5, 2, action)
    replay = make_replay(make_spec(action=action), rows=40, n_envs=2)
    advance(history, replay, 30)
    assert read(replay, *everything(replay))["action"].max() > 255
    check(history, replay, read(replay, *everything(replay)))


@pytest.mark.parametrize("n_step", [1, 3])
def test_masks_are_those_of_the_state_and_of_its_successor(n_step: int) -> None:
    history = History(2, 3)
    replay = make_replay(make_spec(mask=True), rows=17, n_envs=3, n_step=n_step)
    for size in (5, 3, 8, 2, 9, 16, 1):
        advance(history, replay, size)
        if size == 2:
            history.cut()
            replay.cut()
        assert check(history, replay, read(replay, *everything(replay))) == expected(history, replay)


def test_by_hand_three_steps_with_an_end_in_the_middle() -> None:
    """Rewards 1, 2, 4, 8, 16 with an ending after the second, then its reset row."""
    replays = {}
    for name in ("terminated", "truncated"):
        replay = make_replay(make_spec((1,)), rows=10, n_envs=1, n_step=3)
        batch = {
            "obs": np.arange(7, dtype=np.float32).reshape(7, 1, 1),
            "action": np.zeros((6, 1), np.int32),
            "reward": np.array([[1], [2], [99], [4], [8], [16]], np.float32),
            "terminated": np.zeros((6, 1), bool),
            "truncated": np.zeros((6, 1), bool),
            "valid": np.array([[1], [1], [0], [1], [1], [1]], bool),
        }
        batch[name][1] = True
        replay.add(batch, 0, 6, None)
        replays[name] = read(replay, *everything(replay))
    for name, bootstrap in (("terminated", (0.0, 0.0)), ("truncated", (0.9**2, 0.9))):
        batch = replays[name]
        np.testing.assert_array_equal(batch["obs"][:, 0], [0, 1, 3])
        np.testing.assert_allclose(batch["reward"], [1 + 0.9 * 2, 2, 4 + 0.9 * 8 + 0.81 * 16], rtol=1e-6)
        np.testing.assert_allclose(batch["discount"], [*bootstrap, 0.9**3], rtol=1e-6)
        np.testing.assert_array_equal(batch["next_obs"][:, 0], [2, 2, 6])


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_cut_is_a_truncation_before_the_observation_that_waits(n_step: int, prioritized: bool) -> None:
    history = History(4, 3, ends=0.3)
    replay = make_replay(make_spec(), rows=14, n_envs=3, n_step=n_step, prioritized=prioritized)
    rng = np.random.default_rng(0)
    for size in (3, 1, 2, 5, 1, 1, 4, 6, 2):
        advance(history, replay, size)
        waiting, newest = history.standing["obs"], len(history.rows) - 1
        history.cut()
        replay.cut()
        for env in np.flatnonzero(history.rows[newest]["valid"]):
            batch = read(replay, np.array([newest % 14]), np.array([env]))
            np.testing.assert_array_equal(batch["next_obs"][0], waiting[env])
            ended = history.rows[newest]["terminated"][env]
            assert batch["discount"][0] == (0 if ended else np.float32(GAMMA))
        advance(history, replay, 1)
        assert check(history, replay, read(replay, *everything(replay))) == expected(history, replay)
        if len(expected(history, replay)):
            slots, envs, _ = replay.sample(rng, (1, 50), beta=1.0)
            check(history, replay, read(replay, slots[0], envs[0]))
    assert len(history.cuts) == 9
    assert len(history.rows) > 2 * 14


class Pictures(gymnasium.Env):
    """Random frames, so that no two are alike; episodes of random length, half of them truncated."""

    action_space = spaces.Discrete(2)

    def __init__(self, channels: int) -> None:
        self.observation_space = spaces.Box(0, 255, (3, 3, channels), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        return self._frame(), {}

    def _frame(self) -> np.ndarray:
        return self.np_random.integers(0, 256, self.observation_space.shape).astype(np.uint8)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        done, terminates = self.np_random.random(2) < (0.2, 0.5)
        return self._frame(), 1.0, bool(done and terminates), bool(done and not terminates), {}


class Gallery:
    """Those environments under Gymnasium's own frame stack, stepped with next-step autoreset."""

    def __init__(self, n_envs: int, frames: int, channels: int) -> None:
        self.envs = [FrameStackObservation(Pictures(channels), frames) for _ in range(n_envs)]
        self.seed, self.observations = 0, [np.empty(0)]
        self.valid: list[np.ndarray] = []
        self.restart()

    def restart(self) -> None:
        self.seed += 100
        self.resetting = np.zeros(len(self.envs), bool)
        self.observations[-1] = self._see([env.reset(seed=self.seed + i)[0] for i, env in enumerate(self.envs)])

    @staticmethod
    def _see(stacks: list[np.ndarray]) -> np.ndarray:
        """[N, frames, H, W, C] to [N, H, W, frames·C], as the policy sees them."""
        return np.stack([np.concatenate(list(stack), axis=-1) for stack in stacks])

    def collect(self, n: int) -> Batch:
        rows = []
        for _ in range(n):
            stacks, ended, valid = [], np.zeros((2, len(self.envs)), bool), ~self.resetting
            for i, env in enumerate(self.envs):
                if self.resetting[i]:
                    stacks.append(env.reset()[0])
                else:
                    stack, _, *ended[:, i], _ = env.step(0)
                    stacks.append(stack)
            self.resetting = ended[0] | ended[1]
            self.observations.append(self._see(stacks))
            self.valid.append(valid)
            zeros = np.zeros(len(self.envs))
            numbers = {"action": zeros.astype(np.int32), "reward": zeros.astype(np.float32)}
            rows.append(numbers | {"terminated": ended[0], "truncated": ended[1], "valid": valid})
        batch = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        return batch | {"obs": np.stack(self.observations[-n - 1 :])}


@pytest.mark.parametrize(("frames", "channels", "n_step"), [(4, 1, 1), (4, 1, 3), (2, 3, 1), (3, 3, 2)])
def test_stacked_frames_are_put_together_as_gymnasium_shows_them(frames: int, channels: int, n_step: int) -> None:
    n_envs, rows = 2, 19
    gallery = Gallery(n_envs, frames, channels)
    spec = make_spec((3, 3, frames * channels))
    replay = make_replay(spec, rows, n_envs, n_step=n_step, frame_stack=frames)
    assert replay.storage.arrays["obs"].shape == (rows, n_envs, 3, 3, channels), "each frame once"
    is_short, is_seam = False, False
    for i, size in enumerate([4] * 3 + [7] * 4 + [4] * 3):
        replay.add(gallery.collect(size), 0, size, None)
        first, _ = replay.window
        slots, envs = everything(replay)
        times = first + (slots - first) % rows
        shown = np.stack(gallery.observations)
        batch = read(replay, slots, envs)
        assert batch["obs"].dtype == np.uint8
        np.testing.assert_array_equal(batch["obs"], shown[times, envs])
        for k, (time, env) in enumerate(zip(times, envs, strict=True)):
            steps = 1
            while steps < n_step and time + steps < len(gallery.valid) and gallery.valid[time + steps][env]:
                steps += 1
            np.testing.assert_array_equal(batch["next_obs"][k], shown[time + steps, env])
        repeats = (batch["obs"][..., :channels] == batch["obs"][..., channels : 2 * channels]).all(axis=(1, 2, 3))
        is_short |= bool(repeats.any() and not repeats.all())
        is_seam |= bool((slots < frames - 1).any()) and first > rows
        if i == 8:
            replay.cut()  # the environments begin anew: their first frame stands in a row of its own
            gallery.observations.append(np.empty(0))
            gallery.valid.append(np.zeros(n_envs, bool))
            gallery.restart()
    assert is_short, "some stacks begin with a first frame repeated"
    assert is_seam, "some stacks reach over the ring's seam"


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("mask", [False, True])
def test_numpy_and_jax_read_the_same(mask: bool, n_step: int) -> None:
    host, accelerator = (
        make_replay(make_spec(mask=mask), rows=13, n_envs=2, n_step=n_step, storage=storage)
        for storage in (HostStorage, AcceleratorStorage)
    )
    for replay in (host, accelerator):
        history = History(6, 2)
        for size in (4, 4, 4, 4, 4):
            advance(history, replay, size)
        history.cut()
        replay.cut()
        advance(history, replay, 4)
    samples = [replay.sample(np.random.default_rng(0), (3, 16)) for replay in (host, accelerator)]
    for one, other in zip(*samples, strict=True):
        np.testing.assert_array_equal(one, other)
    slots, envs, _ = samples[0]
    one, other = read(host, slots, envs), read(accelerator, slots, envs)
    assert one.keys() == other.keys()
    for name, rows in one.items():
        assert rows.shape[:2] == (3, 16)
        assert rows.dtype == other[name].dtype, name
        np.testing.assert_array_equal(rows, other[name], err_msg=name)


@pytest.mark.parametrize("storage", [HostStorage, AcceleratorStorage])
@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("before", [6, 40])  # a ring partly filled, and one gone round
def test_a_loaded_replay_has_the_same_past_and_future(before: int, prioritized: bool, storage: Any) -> None:
    def fresh() -> Replay:
        return make_replay(make_spec(mask=True), 19, 3, n_step=3, prioritized=prioritized, storage=storage)

    def live(replay: Replay, history: History, seed: int) -> list[np.ndarray]:
        rng, met = np.random.default_rng(seed), []
        for _ in range(6):
            advance(history, replay, 2)
            slots, envs, weight = replay.sample(rng, (2, 8), beta=0.7)
            met += [slots, envs, weight]
            if replay.priorities is not None:
                replay.prioritize(slots, envs, np.abs(rng.normal(size=slots.shape)))
        met += read(replay, slots, envs).values()
        return [*met, np.array([replay.count, replay.reward_bound, replay.size, replay.age(met[0])])]

    one, other = fresh(), fresh()
    history = History(8, 3)
    for _ in range(before // 2):
        advance(history, one, 2)
    if prioritized:
        slots, envs, _ = one.sample(np.random.default_rng(0), (4, 16))
        one.prioritize(slots, envs, np.linspace(0.1, 5, 64).reshape(4, 16))
    history.cut()
    one.cut()
    other.load({name: np.array(array) for name, array in one.to_arrays().items()})
    futures = []
    for replay in (one, other):
        same = History(8, 3)
        for _ in range(before // 2 * 2):
            same.step()
        same.cut()
        futures.append(live(replay, same, seed=1))
    for mine, theirs in zip(*futures, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()
    assert one.to_arrays().keys() == other.to_arrays().keys()


def test_what_was_taken_from_the_accelerator_stays_as_it_was() -> None:
    """A write reuses the arrays' memory; what was handed out before must not lie in it."""
    history = History(8, 2)
    replay = make_replay(make_spec(), 10, 2, storage=AcceleratorStorage)
    advance(history, replay, 9)
    taken = replay.to_arrays()
    copied = {name: np.array(array) for name, array in taken.items()}
    for _ in range(5):
        advance(history, replay, 9)
    for name in replay.layout.columns:
        np.testing.assert_array_equal(taken[name], copied[name], err_msg=name)


@pytest.mark.parametrize("storage", [HostStorage, AcceleratorStorage])
def test_only_what_was_written_is_saved(storage: Any) -> None:
    history = History(8, 2)
    replay = make_replay(make_spec(), 100, 2, prioritized=True, storage=storage)
    advance(history, replay, 7)
    arrays = replay.to_arrays()
    assert len(arrays["obs"]) == 8
    assert len(arrays["priorities"]) == 16
    assert sum(array.nbytes for array in arrays.values()) < 1000


def test_numpy_and_jax_stack_the_same_frames() -> None:
    gallery = Gallery(2, 4, 1)
    host, accelerator = (
        make_replay(make_spec((3, 3, 4)), 19, 2, n_step=3, frame_stack=4, storage=storage)
        for storage in (HostStorage, AcceleratorStorage)
    )
    for _ in range(6):
        block = gallery.collect(5)
        for replay in (host, accelerator):
            replay.add(block, 0, 5, None)
    slots, envs = everything(host)
    other = read(accelerator, slots, envs)
    for name, rows in read(host, slots, envs).items():
        assert rows.dtype == other[name].dtype, name
        np.testing.assert_array_equal(rows, other[name], err_msg=name)


def test_frames_go_on_where_a_loaded_replay_was_left() -> None:
    gallery = Gallery(2, 4, 1)
    one, other = (make_replay(make_spec((3, 3, 4)), 19, 2, frame_stack=4) for _ in range(2))
    for _ in range(5):
        one.add(gallery.collect(5), 0, 5, None)
    other.load({name: np.array(array) for name, array in one.to_arrays().items()})
    more = gallery.collect(12)
    for replay in (one, other):
        replay.add(more, 0, 12, None)
    slots, envs = everything(one)
    for name, rows in read(one, slots, envs).items():
        np.testing.assert_array_equal(rows, read(other, slots, envs)[name])


def test_the_bound_of_rewards_is_the_largest_ever_seen() -> None:
    replay = make_replay(make_spec(), 5, 1)
    rewards = []
    history = History(0, 1, ends=0.0)
    for _ in range(12):
        advance(history, replay, 1)
        rewards.append(abs(float(history.rows[-1]["reward"][0])))
        assert replay.reward_bound == max(rewards)


def test_age_is_counted_in_env_steps() -> None:
    replay = make_replay(make_spec(), 5, 2)
    history = History(0, 2)
    for _ in range(9):
        advance(history, replay, 1)
    # Nine rows were written: the newest is row 8, in slot 3; slots 2 and 0 were written one and three rows before.
    assert replay.age(np.array([3])) == 0
    assert replay.age(np.array([3, 2, 0])) == pytest.approx((0 + 1 + 3) / 3 * 2)


def cartpole_layout(**options: Any) -> Layout:
    spec = make_spec((4,), ActionSpec("discrete", (2,), 1))
    return make_layout(spec, **{"n_envs": 1, "frame_stack": 1, "n_step": 1, "gamma": 0.99, **options})


def test_a_million_transitions_of_cartpole_take_less_than_100_mb() -> None:
    layout = cartpole_layout(rows=1_000_000)
    # Four numbers of four bytes, an action of one, a reward of four, two flags.
    assert layout.nbytes == 1_000_000 * (16 + 1 + 4 + 2 + 1) < 100e6
    assert cartpole_layout(rows=250_000, n_envs=4).nbytes == layout.nbytes


def test_storage_takes_what_the_layout_says() -> None:
    layout = cartpole_layout(rows=1000, n_envs=3)
    for storage in (HostStorage(layout), AcceleratorStorage(layout)):
        assert sum(array.nbytes for array in storage.arrays.values()) == layout.nbytes - layout.rows * layout.n_envs


def test_a_million_stacks_of_frames_take_what_the_frames_take() -> None:
    spec = make_spec((84, 84, 4), ActionSpec("discrete", (18,), 1))
    layout = make_layout(spec, rows=1_000_000, n_envs=1, frame_stack=4, n_step=1, gamma=0.99)
    per_row = layout.nbytes / 1_000_000
    assert 84 * 84 < per_row <= 84 * 84 + 16


def test_stacked_numbers_are_stored_as_they_are() -> None:
    layout = cartpole_layout(rows=10, frame_stack=4)
    assert layout.frames == 1
    assert layout.columns["obs"][0] == (4,)


def discrete_spec(*sizes: int) -> EnvSpec:
    dtype = np.dtype(np.float32)
    return EnvSpec("Fake-v0", (sum(sizes),), dtype, False, DISCRETE, None, None, False, "fake", "test", sizes)


def one_hot_batch(sizes: tuple[int, ...], n: int, n_envs: int) -> Batch:
    """n rows of a history whose observations are one-hot components side by side."""
    history, rng = History(0, n_envs, ends=0.1), np.random.default_rng(0)
    for _ in range(n):
        history.step()
    parts = [rng.integers(0, size, (n + 1, n_envs, 1)) == np.arange(size) for size in sizes]
    return history.batch(n) | {"obs": np.concatenate(parts, axis=-1).astype(np.float32)}


SIZES = [((500,), np.uint16), ((256,), np.uint8), ((1,), np.uint8), ((3, 2, 4), np.uint8), ((2, 70_000), np.uint32)]


@pytest.mark.parametrize("storage", [HostStorage, AcceleratorStorage])
@pytest.mark.parametrize(("sizes", "dtype"), SIZES)
def test_discrete_observations_are_kept_as_indices_and_sampled_one_hot(
    sizes: tuple[int, ...], dtype: Any, storage: Any
) -> None:
    replay = make_replay(discrete_spec(*sizes), rows=9, n_envs=2, storage=storage)
    batch = one_hot_batch(sizes, 7, 2)
    replay.add(batch, 0, 7, None)
    assert replay.layout.columns["obs"] == ((len(sizes),), dtype)
    slots, envs = everything(replay)
    found = read(replay, slots, envs)
    assert found["obs"].dtype == found["next_obs"].dtype == np.float32
    np.testing.assert_array_equal(found["obs"], batch["obs"][slots, envs])
    np.testing.assert_array_equal(found["next_obs"], batch["obs"][slots + 1, envs])


def test_two_hundred_thousand_transitions_of_taxi_take_two_megabytes() -> None:
    layout = make_layout(discrete_spec(500), rows=25_000, n_envs=8, frame_stack=1, n_step=1, gamma=0.99)
    assert layout.nbytes == 200_000 * (2 + 1 + 4 + 2 + 1)  # index, action, reward, two flags, mark


@pytest.mark.parametrize("storage", [HostStorage, AcceleratorStorage])
@pytest.mark.parametrize("sizes", [(5,), (1,), (3, 2)])
def test_a_replay_that_was_saved_one_hot_still_loads(sizes: tuple[int, ...], storage: Any) -> None:
    one, other = (make_replay(discrete_spec(*sizes), rows=9, n_envs=2, storage=storage) for _ in range(2))
    batch = one_hot_batch(sizes, 7, 2)
    one.add(batch, 0, 7, None)
    other.load(one.to_arrays() | {"obs": batch["obs"]})
    for name, rows in read(one, *everything(one)).items():
        np.testing.assert_array_equal(rows, read(other, *everything(one))[name])
    assert other.to_arrays()["obs"].dtype == np.uint8


def test_saved_rows_are_read_into_the_memory_of_the_replay() -> None:
    history, replay = History(8, 2), make_replay(make_spec(), 100, 2)
    advance(history, replay, 7)
    saved = {name: np.array(array) for name, array in replay.to_arrays().items()}
    fresh = make_replay(make_spec(), 50, 2)
    arrays = {name: fresh.place(name, array.shape, array.dtype) for name, array in saved.items()}
    for name, array in arrays.items():
        array[...] = saved[name]
        assert name not in fresh.layout.columns or np.shares_memory(array, fresh.storage.arrays[name])
    fresh.load(arrays)
    for name, array in fresh.to_arrays().items():
        np.testing.assert_array_equal(array, saved[name], err_msg=name)


@pytest.mark.parametrize(("before", "after"), [(50, 6), (9, 20)])  # too many rows; gone round in a ring of other length
def test_a_replay_that_does_not_fit_is_refused(before: int, after: int) -> None:
    history, replay = History(8, 2), make_replay(make_spec(), before, 2)
    for _ in range(4):
        advance(history, replay, 4)
    arrays = {name: np.array(array) for name, array in replay.to_arrays().items()}
    with pytest.raises(
        ConfigError, match=f"the replay has {after} rows, and the {len(arrays['obs'])} of the checkpoint"
    ):
        make_replay(make_spec(), after, 2).load(arrays)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("epoch", [1, 4, 16])
@pytest.mark.parametrize("env_steps", [1, 16, 101])
def test_a_ring_holds_all_that_a_training_can_fill(env_steps: int, epoch: int, n_envs: int) -> None:
    """At the worst: episodes of one step, a cut after every epoch."""
    steps = rows = 0
    while steps < env_steps:
        steps += -(-epoch // 2) * n_envs
        rows += epoch + 1
    assert rows + 1 <= rows_for(10**9, env_steps, n_envs, epoch) <= 4 * (env_steps + epoch) + 4
    assert rows_for(50, 10**9, n_envs, epoch) == 50
