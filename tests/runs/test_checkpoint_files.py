"""Checkpoints: exact, linked, and refused with a way out when damaged."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gymnasium_solver.errors import CheckpointError, NotFoundError
from gymnasium_solver.runs.reader import Run, checkpoint_ref, split_checkpoint_ref
from gymnasium_solver.runs.writer import RunWriter

NewRun = Callable[..., RunWriter]
ARRAYS = {
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "scalar": np.float64(0.1),
    "key": np.array([1, 2**32 - 1], np.uint32),
    "empty": np.empty((0, 3), np.float32),
    "flag": np.array(True),
    "bytes": np.arange(4, dtype=np.uint8),
    "nan": np.array([np.nan, -np.inf]),
}
META = {"epoch": 12, "best_reward": float("-inf"), "state": 2**100, "names": ["a", None]}


@pytest.fixture
def saved(new_run: NewRun) -> Run:
    writer = new_run(rows=12)
    writer.checkpoint(["epoch=12", "last", "best"], ARRAYS, META)
    return Run(writer.path)


def test_arrays_and_metadata_come_back_exactly(saved: Run) -> None:
    for name in ("last", "@best", "epoch=12"):
        arrays, meta = saved.read_checkpoint(name)
        assert meta == META
        assert arrays.keys() == ARRAYS.keys()
        for key, value in ARRAYS.items():
            np.testing.assert_array_equal(arrays[key], value, strict=True)


def test_an_array_is_read_to_where_it_belongs_or_left_out(saved: Run) -> None:
    own = np.zeros((5, 2), np.float32)

    def place(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        if name == "nan":
            return None
        return own[: shape[0]] if name == "transposed" else np.empty(shape, dtype)

    arrays, meta = saved.read_checkpoint("last", place)
    assert meta == META
    assert arrays.keys() == ARRAYS.keys() - {"nan"}
    np.testing.assert_array_equal(own[:3], ARRAYS["transposed"])
    assert np.shares_memory(arrays["transposed"], own) and not own[3:].any()


def test_damage_is_found_in_what_is_left_out_too(saved: Run) -> None:
    path = saved.path / "checkpoints" / "last.safetensors"
    path.write_bytes(path.read_bytes())  # no longer linked to the others
    _flip(path)
    with pytest.raises(CheckpointError, match="checksum"):
        saved.read_checkpoint("last", lambda *_: None)


def test_large_arrays_are_read_in_pieces(new_run: NewRun) -> None:
    large = np.arange(700_000, dtype=np.float64)
    run = Run(new_run().checkpoint(["last"], {"large": large, "small": np.ones(3)}, META).parent.parent)
    np.testing.assert_array_equal(run.read_checkpoint("last")[0]["large"], large)
    assert run.read_checkpoint("last", lambda *_: None) == ({}, META)


def test_every_name_has_a_sidecar_and_shares_the_data(saved: Run) -> None:
    directory = saved.path / "checkpoints"
    assert saved.checkpoints() == ["last", "best", "epoch=12"]
    assert len({(directory / f"{name}.safetensors").stat().st_ino for name in saved.checkpoints()}) == 1
    sidecar = json.loads((directory / "best.json").read_text())
    assert sidecar["epoch"] == 12
    assert sidecar["file"]["name"] == "best.safetensors"


def test_a_new_last_leaves_best_alone(new_run: NewRun) -> None:
    writer = new_run()
    writer.checkpoint(["last", "best"], {"w": np.ones(2)}, {"epoch": 1})
    writer.checkpoint(["last"], {"w": np.zeros(2)}, {"epoch": 2})
    run = Run(writer.path)
    assert run.read_checkpoint("best")[1] == {"epoch": 1}
    assert run.read_checkpoint("last")[1] == {"epoch": 2}


def test_equal_checkpoints_are_equal_bytes(new_run: NewRun) -> None:
    files = [new_run().checkpoint(["last"], ARRAYS, META).read_bytes() for _ in range(3)]
    assert files[0] == files[1] == files[2]


def test_without_hard_links_the_data_is_copied(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    writer = new_run()
    writer.checkpoint(["last", "best"], ARRAYS, META)
    assert Run(writer.path).read_checkpoint("best")[1] == META


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "header cut": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "one bit": _flip,
    "zeros": lambda path: path.write_bytes(b"\0" * 500),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"w": [1.0] * 100})),
    "foreign": lambda path: save_file({"w": np.ones(3)}, path),
    "foreign metadata": lambda path: save_file({"w": np.ones(3)}, path, metadata={"format": "pt"}),
    "shape of another size": lambda path: path.write_bytes(path.read_bytes().replace(b"[3,2]", b"[9,9]")),
    "a header of no tensors": lambda path: path.write_bytes(b"\x02" + 7 * b"\0" + b"[]"),
    "our key, not our content": lambda path: save_file({"w": np.ones(3)}, path, metadata={"gymnasium-solver": "[]"}),
    "directory": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_names_itself_and_an_intact_one(saved: Run, damage: str) -> None:
    path = saved.path / "checkpoints" / "last.safetensors"
    data = path.read_bytes()
    path.unlink()  # the other names are links to the same data
    if damage != "directory":
        path.write_bytes(data)
    DAMAGES[damage](path)
    with pytest.raises(CheckpointError) as caught:
        saved.read_checkpoint("last")
    assert str(path) in str(caught.value)
    assert f"use {saved.run_id}/@best, which is intact" in str(caught.value)


def test_when_nothing_is_intact_it_says_so(saved: Run) -> None:
    for path in (saved.path / "checkpoints").glob("*.safetensors"):
        path.write_bytes(b"x")
    with pytest.raises(CheckpointError, match="no intact one"):
        saved.read_checkpoint("best")


def test_a_checkpoint_that_does_not_exist_lists_those_that_do(saved: Run, new_run: NewRun) -> None:
    with pytest.raises(NotFoundError, match=r"no checkpoint 'epoch=3'; there are last, best, epoch=12"):
        saved.read_checkpoint("epoch=3")
    with pytest.raises(NotFoundError, match="none yet"):
        Run(new_run().path).read_checkpoint("best")


@pytest.mark.integration
def test_a_checkpoint_is_described_by_its_sidecar(new_run: NewRun) -> None:
    writer = new_run()
    writer.checkpoint(["best"], {"w": np.ones(2)}, {"progress": {"epoch": 3, "best_eval": 7.5, "rng": {"state": [1]}}})
    run = Run(writer.path)
    found = run.describe_checkpoint(run.require_checkpoint("@best"))
    size = (run.path / "checkpoints" / "best.safetensors").stat().st_size
    named = {"name": "best", "ref": f"{run.run_id}/@best"}
    assert found == {**named, "bytes": size, "progress": {"epoch": 3, "best_eval": 7.5}}
    for damaged in ("{", '{"file": 3, "progress": [1]}', "[]"):
        (run.path / "checkpoints" / "best.json").write_text(damaged)
        assert run.describe_checkpoint("best") == {**named, "bytes": None, "progress": {}}


@pytest.mark.parametrize("name", ["best", "last", "epoch=12", "mine"])
def test_references_are_split_as_they_are_made(name: str) -> None:
    assert split_checkpoint_ref(checkpoint_ref("run", name)) == ("run", name)


@pytest.mark.parametrize("name", ["", "../evil", "a/b", ".hidden"])
def test_names_stay_inside_the_directory(new_run: NewRun, name: str) -> None:
    with pytest.raises(ValueError, match="checkpoint names"):
        new_run().checkpoint([name], {}, {})
