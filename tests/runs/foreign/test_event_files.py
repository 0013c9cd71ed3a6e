"""The reader of TensorBoard event files, against bytes made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.runs.foreign.event_files import read_events
from tests.runs.foreign.event_writer import event, field, record, scalar, tensor_scalar, text, version


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(records))
    return path


def test_scalars_of_every_form(tmp_path: Path) -> None:
    steps = [0, 1, 127, 128, 20_000, 3_000_000_000]
    path = write(
        tmp_path / "events.out.tfevents.1",
        version(),
        *(event(step, scalar("loss", 0.5 + index), time=100.0 + index) for index, step in enumerate(steps)),
        event(7, tensor_scalar("float", 0.25)),
        event(8, tensor_scalar("double", 1 / 3, double=True)),
        event(9, scalar("a", 1.0), scalar("b", 2.0)),
    )
    events = read_events([path])
    assert events.notes == []
    assert events.scalars["loss"].steps.tolist() == steps
    assert events.scalars["loss"].values.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert events.scalars["loss"].times.tolist() == [100.0, 101.0, 102.0, 103.0, 104.0, 105.0]
    assert events.scalars["float"].values.tolist() == [0.25]
    assert events.scalars["double"].values.tolist() == [1 / 3]
    assert (events.scalars["a"].steps.tolist(), events.scalars["b"].values.tolist()) == ([9.0], [2.0])


def test_nan_and_infinity_survive(tmp_path: Path) -> None:
    path = write(tmp_path / "tfevents", *(event(i + 1, scalar("x", v)) for i, v in enumerate((np.nan, np.inf, 1.0))))
    np.testing.assert_equal(read_events([path]).scalars["x"].values, [np.nan, np.inf, 1.0])


def test_many_tags_of_one_length_are_told_apart(tmp_path: Path) -> None:
    names = [f"tag{number:03}" for number in range(300)]
    records = [event(step, scalar(name, step)) for step in (5, 6) for name in names]
    events = read_events([write(tmp_path / "tfevents", *records)])
    assert sorted(events.scalars) == names
    assert all(series.values.tolist() == [5.0, 6.0] for series in events.scalars.values())


def test_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "tfevents", event(0, text("hyperparameters", "|param|value|\n|-|-|\n|seed|1|")))
    assert read_events([path]).texts == {"hyperparameters/text_summary": "|param|value|\n|-|-|\n|seed|1|"}


def test_several_files_are_one_run(tmp_path: Path) -> None:
    second = write(tmp_path / "tfevents.2", event(20, scalar("x", 2), time=20.0))
    first = write(tmp_path / "tfevents.1", event(10, scalar("x", 1), time=10.0))
    assert read_events([second, first]).scalars["x"].values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("cut", [1, 5, 13, 30])
def test_a_file_cut_off_gives_what_is_whole(tmp_path: Path, cut: int) -> None:
    whole = b"".join(event(step, scalar("x", step)) for step in range(1, 11))
    path = write(tmp_path / "tfevents", whole[:-cut])
    events = read_events([path])
    assert events.scalars["x"].values.tolist() == list(range(1, 10))
    assert "cut off" in events.notes[0]


def test_a_damaged_record_is_left_out(tmp_path: Path) -> None:
    broken = record(field(1, 1.0, "<d") + b"\x2a\xff\xff\xff\x0f")
    path = write(tmp_path / "tfevents", event(1, scalar("x", 1)), broken, event(2, scalar("x", 2)))
    events = read_events([path])
    assert events.scalars["x"].values.tolist() == [1.0, 2.0]
    assert events.notes == ["tfevents: 1 damaged records were left out"]


@pytest.mark.parametrize("content", [b"", b"\0" * 7, b"no event file at all, but long enough to be one", b"\xff" * 64])
def test_rubbish_is_a_note(tmp_path: Path, content: bytes) -> None:
    events = read_events([write(tmp_path / "tfevents", content)])
    assert events.scalars == {}
    assert len(events.notes) == 1


def test_random_bytes_never_raise(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        good = bytearray(b"".join(event(step, scalar("x", step), text("t", "a")) for step in range(1, 4)))
        for at in generator.integers(0, len(good), 4):
            good[at] = generator.integers(256)
        read_events([write(tmp_path / "tfevents", bytes(good))])


def test_negative_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "tfevents", event(-1, scalar("x", 1), time=1.0), event(1, scalar("x", 2), time=2.0))
    assert read_events([path]).scalars["x"].steps.tolist() == [-1.0, 1.0]


def test_the_encoder_writes_what_tensorboard_does() -> None:
    """Bytes of `SummaryWriter.add_scalar("a", 1.0, 2)` with its time set to 0.5, checksums apart."""
    data = bytes.fromhex("09000000000000e03f10022a0a0a080a0161150000803f")
    assert event(2, scalar("a", 1.0), time=0.5)[12:-4] == data
    assert struct.unpack("<Q", event(2, scalar("a", 1.0), time=0.5)[:8]) == (len(data),)
