"""Progress survives a checkpoint exactly, and its windows hold the latest episodes."""

from __future__ import annotations

import json

import pytest

from gymnasium_solver.train.progress import WINDOW, Progress


def through_json(progress: Progress) -> Progress:
    return Progress.from_meta(json.loads(json.dumps(progress.to_meta())))


def test_a_fresh_progress_round_trips() -> None:
    assert through_json(Progress()) == Progress()


def test_a_progress_round_trips_exactly() -> None:
    progress = Progress(restart_epoch=3, last_eval_epoch=2, best_eval=0.1 + 0.2, solved=True)
    for i in range(WINDOW + 50):
        progress.advance(7, 3, [(i / 3, i), (-1e-17 * i, i + 1)])
    restored = through_json(progress)
    assert restored == progress
    assert restored.returns.maxlen == restored.lengths.maxlen == WINDOW


def test_a_restored_progress_goes_on_as_the_original_does() -> None:
    progress = Progress()
    for i in range(WINDOW):
        progress.advance(1, 1, [(float(i), i)])
    restored = through_json(progress)
    for one in (progress, restored):
        one.advance(10, 2, [(0.5, 4)])
    assert restored == progress
    assert restored.metrics() == progress.metrics()
    assert restored.returns[0] == 1.0  # the first episode left the window


def test_what_is_written_does_not_change_afterwards() -> None:
    progress = Progress()
    progress.advance(1, 1, [(1.0, 1)])
    meta = progress.to_meta()
    progress.advance(1, 1, [(2.0, 2)])
    assert (meta["epoch"], meta["returns"], meta["lengths"]) == (1, [1.0], [1])


def test_fields_of_another_release_do_not_stop_a_resume() -> None:
    restored = Progress.from_meta({"epoch": 4, "returns": [1.5], "a_field_of_later": 1})
    assert (restored.epoch, list(restored.returns), restored.env_steps) == (4, [1.5], 0)
    assert restored.returns.maxlen == WINDOW


def test_advance_counts() -> None:
    progress = Progress()
    progress.advance(100, 8, [(1.0, 10), (5.0, 20)])
    progress.advance(90, 8, [])
    assert (progress.epoch, progress.env_steps, progress.updates, progress.episodes) == (2, 190, 16, 2)
    progress.advance(100, 8, [(3.0, 60), (3.0, 30)])
    assert progress.metrics() == {
        "train/cnt/env_steps": 290,
        "train/cnt/epochs": 3,
        "train/cnt/episodes": 4,
        "train/cnt/updates": 24,
        "train/roll/ep_rew_mean": 3.0,
        "train/roll/ep_rew_last": 3.0,
        "train/roll/ep_rew_best": 5.0,
        "train/roll/ep_len_mean": 30.0,
    }


def test_the_best_episode_may_be_negative_and_outlives_the_window() -> None:
    progress = Progress()
    progress.advance(1, 1, [(-5.0, 1), (-3.0, 1)])
    assert progress.best_episode == -3.0
    progress.advance(1, 1, [(-9.0, 1)] * WINDOW)
    assert progress.metrics()["train/roll/ep_rew_best"] == -3.0
    assert progress.metrics()["train/roll/ep_rew_mean"] == -9.0


def test_without_an_episode_there_is_nothing_to_say_of_episodes() -> None:
    progress = Progress()
    progress.advance(5, 1, [])
    assert not [name for name in progress.metrics() if name.startswith("train/roll/")]


def test_recent_mean_takes_the_latest_and_only_when_there_are_enough() -> None:
    progress = Progress()
    progress.advance(1, 1, [(100.0, 1), (1.0, 1), (2.0, 1)])
    assert progress.recent_mean(4) is None
    assert progress.recent_mean(3) == pytest.approx(103 / 3)
    assert progress.recent_mean(2) == 1.5
