"""A replay that does not fit is refused with what it takes, what there is, and what would fit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.data import memory
from gymnasium_solver.data.layout import Layout
from gymnasium_solver.data.memory import describe, host_memory, require_memory, shared_by
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.train.session import train


def layout_of(transitions: int, entry: int, n_envs: int = 1) -> Layout:
    columns = {"obs": ((entry,), np.dtype(np.uint8))}
    return Layout(transitions // n_envs, n_envs, columns, frames=1, n_step=1, gamma=0.99)


def refusal(layout: Layout, available: int, where: str = "this machine") -> str:
    with pytest.raises(ConfigError) as caught:
        require_memory(layout, available, where)
    return str(caught.value)


@pytest.mark.parametrize("n_envs", [1, 8])
def test_what_does_not_fit_is_told_in_full(n_envs: int) -> None:
    layout = layout_of(1_000_000, 28_000, n_envs)
    assert refusal(layout, 7_000_000_000, "the gpu") == (
        "buffer_size: 1000000 transitions take 28.0 GB, and the gpu has 7.0 GB free; use at most 220000"
    )  # 90 % of 7 GB hold 225,000, told in two digits


def test_small_sizes_are_told_in_megabytes() -> None:
    assert refusal(layout_of(1_000_000, 100), 50_000_000) == (
        "buffer_size: 1000000 transitions take 100 MB, and this machine has 50 MB free; use at most 450000"
    )
    assert (describe(999_000_000), describe(1_250_000_000)) == ("999 MB", "1.2 GB")


@pytest.mark.parametrize("entry", [23, 7064, 28_231])
@pytest.mark.parametrize("available", [3_000_000, 123_456_789, 9_876_543_210])
def test_the_largest_size_named_fits_and_a_tenth_more_does_not(entry: int, available: int) -> None:
    largest = int(re.findall(r"use at most (\d+)", refusal(layout_of(10**9, entry), available))[0])
    require_memory(layout_of(largest, entry), available, "this machine")
    with pytest.raises(ConfigError):
        require_memory(layout_of(int(largest * 1.1) + 1, entry), available, "this machine")


def test_a_tenth_is_kept_free() -> None:
    require_memory(layout_of(900, 1000), 1_000_000, "this machine")
    refusal(layout_of(901, 1000), 1_000_000)


def test_where_nothing_is_known_nothing_is_refused() -> None:
    require_memory(layout_of(10**12, 10**6), None, "this machine")


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({"/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    2000 kB\n"}, 2000 * 1024),
        ({"/sys/fs/cgroup/memory.max": "5000\n", "/sys/fs/cgroup/memory.current": "2000\n"}, 3000),
        ({"/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "2000\n"}, None),
        ({}, None),
    ],
    ids=["machine", "container", "container without a limit", "neither told"],
)
def test_what_is_available_is_what_the_system_says(
    files: dict[str, str], available: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(memory, "Path", lambda name: tmp_path / name.lstrip("/"))
    assert memory.available_bytes() == available


def test_a_container_may_have_less_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("meminfo", "MemAvailable: 2 kB"), ("memory.max", "5000"), ("memory.current", "4000")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "Path", lambda name: tmp_path / Path(name).name)
    assert memory.available_bytes() == 1000


@pytest.mark.integration
@pytest.mark.parametrize("device", ["auto", "host", "accelerator"])
def test_an_absurd_buffer_is_refused_before_anything_is_written(device: str, tmp_path: Path) -> None:
    absurd = {"buffer_size": 10**12, "max_env_steps": 10**12}
    config = load_config("CartPole-v1:dqn", {**absurd, "replay_device": device, "n_envs": 1})
    with pytest.raises(ConfigError) as caught:
        train(config, runs_dir=tmp_path / "runs", command=[])
    # Four numbers of four bytes, an action of one, a reward of four, two flags, and a mark: 24 bytes a transition.
    told = re.fullmatch(
        r"buffer_size: 1000000000000 transitions take 24000\.0 GB, and this machine has (\d+)(\.\d)? [GM]B free; "
        r"use at most (\d+)",
        str(caught.value),
    )
    assert told, str(caught.value)
    assert 0 < int(told[3]) < 10**12
    assert not list(tmp_path.iterdir()), "no run directory"


@pytest.mark.integration
def test_a_replay_that_cannot_fill_is_not_refused(tmp_path: Path) -> None:
    fields = {"buffer_size": 10**12, "max_env_steps": 64, "n_steps": 16, "n_envs": 2, "learning_starts": 32}
    small = {"train_freq": 4, "update_to_data": 0.25, "batch_size": 8, "hidden_dims": [8], "eval_episodes": 1}
    run = train(load_config("CartPole-v1:dqn", fields | small), runs_dir=tmp_path, command=[])
    told = next(line for line in run.log_lines() if "replay of" in line)
    assert int(re.findall(r"replay of ([\d,]+) transitions", told)[0].replace(",", "")) < 300


def test_trainings_at_a_time_have_a_share_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 9_000_000)
    monkeypatch.delenv("GSOLVE_MEMORY_SHARE", raising=False)
    assert host_memory() == (9_000_000, "this machine")
    assert shared_by(1) == {}
    (name, value), *_ = shared_by(3).items()
    monkeypatch.setenv(name, value)
    assert host_memory() == (3_000_000, "each of 3 trainings at a time")
    # What the others have filled meanwhile is theirs: the share stays what it was.
    monkeypatch.setattr(memory, "available_bytes", lambda: 4_000_000)
    assert host_memory()[0] == 3_000_000
    assert shared_by(2) == {name: "1500000/2"}, "a share is shared in turn"
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000)
    assert host_memory() == (1_000_000, "this machine")
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert host_memory()[0] == 3_000_000
    monkeypatch.setenv(name, "much")
    assert host_memory() == (None, "this machine")
    assert shared_by(2) == {}
