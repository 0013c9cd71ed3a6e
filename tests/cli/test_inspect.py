"""`gsolve inspect`: what it prints of our checkpoints, of other files, and of damaged ones."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from gymnasium_solver import api
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.runs.writer import RunWriter


def policy(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {
        "params/actor_head/bias": (2,),
        "params/actor_head/weight": (8, 2),
        "params/trunk/policy/dense/0/bias": (8,),
        "params/trunk/policy/dense/0/weight": (4, 8),
    }
    arrays = {name: rng.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    size = sum(array.size for array in arrays.values())
    steps = np.array(100 * seed, np.int32)
    return arrays | {"optimizer/count": steps, "optimizer/nu": np.full(size, 1e-3, np.float32)}


@pytest.fixture
def run(tmp_path: Path) -> RunWriter:
    """Checkpoints of epochs 1, 2 and 3; the last of them with a NaN."""
    writer = RunWriter.create(tmp_path / "runs", to_dict(load_config("CartPole-v1:ppo")), command=["gsolve"])
    for epoch in (1, 2, 3):
        progress = {"epoch": epoch, "env_steps": 1000 * epoch, "updates": 100 * epoch}
        arrays = policy(epoch)
        if epoch == 3:
            arrays["params/actor_head/weight"][0, 0] = np.nan
        names = [f"epoch={epoch}", "last", *(["best"] if epoch == 2 else [])]
        writer.checkpoint(names, arrays, {"progress": progress, "env_id": "CartPole-v1", "algo_id": "ppo"})
    writer.close()
    return writer


def test_a_sound_checkpoint(gsolve: Callable[..., Any], run: RunWriter) -> None:
    result = gsolve("inspect", f"{run.run_id}/@best")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == f"{run.run_id}/@best: CartPole-v1 ppo, 2,000 env steps, 200 updates"
    assert lines[2].split() == ["PART", "VALUES", "NORM", "LARGEST", "NON-FINITE", "ZEROS", "DRIFT", "PER", "STEP"]
    assert [line.split()[0] for line in lines[3:6]] == ["actor_head", "trunk/policy", "optimizer"]
    assert f"from {run.run_id}/epoch=1" in result.out
    assert lines[-1] == "no problems found"


def test_a_run_stands_for_its_best_checkpoint_as_it_does_everywhere(
    gsolve: Callable[..., Any], run: RunWriter, tmp_path: Path
) -> None:
    shown = json.loads(gsolve("inspect", run.run_id, "--json").out)
    assert shown["checkpoint"] == f"{run.run_id}/@best"
    assert api.inspect(run.run_id, runs_dir=tmp_path / "runs")["checkpoint"] == shown["checkpoint"]
    for file in (run.path / "checkpoints").glob("best.*"):
        file.unlink()
    assert json.loads(gsolve("inspect", run.run_id, "--json").out)["checkpoint"] == f"{run.run_id}/@last"


def test_a_broken_checkpoint_is_described_and_that_is_no_failure(gsolve: Callable[..., Any], run: RunWriter) -> None:
    for reference in (f"{run.run_id}/@last", "@last/@last", f"runs/{run.run_id}/checkpoints/last.safetensors"):
        result = gsolve("inspect", reference)
        assert result.code == 0, result.err
        assert "CRITICAL non-finite-parameters: 1 parameters" in result.out
        assert "params/actor_head/weight (1 of 16)" in result.out
        assert "  remedy: " in result.out
        assert "nothing is wrong" not in result.out


def test_json(gsolve: Callable[..., Any], run: RunWriter) -> None:
    document = json.loads(gsolve("inspect", f"{run.run_id}/epoch=3", "--json").out)
    assert document["healthy"] is False
    assert document["progress"] == {"epoch": 3, "env_steps": 3000, "updates": 300}
    assert document["findings"][0] | {"what": "", "meaning": "", "remedy": ""} == {
        "kind": "non-finite-parameters",
        "severity": "critical",
        "what": "",
        "where": ["params/actor_head/weight"],
        "value": 1,
        "meaning": "",
        "remedy": "",
    }
    head = next(part for part in document["parts"] if part["name"] == "actor_head")
    assert (head["values"], head["non_finite"]) == (18, 1)
    assert json.loads(gsolve("inspect", f"{run.run_id}/epoch=1", "--json").out)["compared_with"] is None


def test_a_file_of_another_program(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    save_file({"fc1.weight": np.zeros((8, 4), np.float32)}, tmp_path / "model.safetensors")
    result = gsolve("inspect", "model.safetensors")
    assert result.code == 0
    assert result.out.startswith("model.safetensors: safetensors")
    assert "HIGH zero-layer: all weights of fc1 are exactly 0" in result.out


def test_bad_input(gsolve: Callable[..., Any], run: RunWriter, tmp_path: Path) -> None:
    (tmp_path / "empty.pt").touch()
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps({"a": 1}))
    broken = run.path / "checkpoints" / "last.safetensors"
    broken.unlink()
    broken.write_bytes(b"\0" * 100)
    for reference, code, words in (
        ("empty.pt", 1, "is empty"),
        ("bomb.pkl", 1, "is a pickle"),
        ("absent.pt", 3, "there is no file absent.pt"),
        ("nothing", 3, "there is no run 'nothing'"),
        (f"{run.run_id}/epoch=9", 3, "has no checkpoint 'epoch=9'"),
        (f"{run.run_id}/@last", 1, "@best, which is intact"),
    ):
        result = gsolve("inspect", reference)
        assert (result.code, result.out) == (code, ""), reference
        assert words in result.err
        assert len(result.err.splitlines()) == 1
