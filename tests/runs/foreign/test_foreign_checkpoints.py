"""Files of other programs: read as arrays, and never as anything that could run. Parts need the torch extra."""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from gymnasium_solver.errors import CheckpointError, MissingExtraError, NotFoundError
from gymnasium_solver.runs import checkpoints
from gymnasium_solver.runs.foreign import checkpoints as foreign_checkpoints
from gymnasium_solver.runs.foreign.checkpoints import load_for_audit, load_run_checkpoint
from gymnasium_solver.runs.reader import Run


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.trace}",)


def torch_like_archive(path: Path, data: bytes) -> None:
    """What torch.save writes, around any pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")


# ---- safetensors


def test_safetensors_of_another_program(tmp_path: Path) -> None:
    arrays = {"net.0.weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    save_file(arrays, tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded, meta = load_for_audit(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded["net.0.weight"], arrays["net.0.weight"], strict=True)
    assert meta["source"] == "safetensors"


def test_our_own_file_is_checked_as_ever(tmp_path: Path) -> None:
    path = checkpoints.save(tmp_path, ["last"], {"params/w": np.ones(100, np.float32)}, {"progress": {"epoch": 3}})
    assert load_for_audit(path)[1]["progress"] == {"epoch": 3}
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        load_for_audit(path)


def test_of_a_large_replay_only_some_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_checkpoints, "_WHOLE", 1000)
    reward = np.arange(100_000, dtype=np.float32)
    arrays = {"params/w": np.ones(5, np.float32), "replay/reward": reward, "replay/numbers": np.ones(2)}
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.json").write_text('{"algo_id": "dqn"}')
    checkpoints.save(run / "checkpoints", ["last"], arrays, {"progress": {"epoch": 3}})
    loaded, meta = load_run_checkpoint(Run(run), "last")
    np.testing.assert_array_equal(loaded["params/w"], arrays["params/w"])
    seen = loaded["replay/reward"]
    assert 1000 < seen.size < 5000
    assert (seen[0], seen[-1]) == (0, 99_999)
    assert meta["progress"] == {"epoch": 3}
    assert meta["config"] == {"algo_id": "dqn"}


# ---- files that are no checkpoints


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.pt", b"", "is empty"),
        ("empty.safetensors", b"", "is empty"),
        ("text.pt", b"not a checkpoint", "no checkpoint that is known"),
        ("cut.safetensors", struct.pack("<Q", 1000) + b'{"a":', "corrupt or truncated"),
        ("huge.safetensors", struct.pack("<Q", 2**62) + b"{}", "corrupt or truncated"),
        ("cut.zip", b"PK\x03\x04 and then nothing", "corrupt or truncated"),
        ("one.pt", b"\x80", "(?i)torch|truncated"),
    ],
)
def test_damaged_files_get_one_sentence(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((CheckpointError, MissingExtraError), match=words) as raised:
        load_for_audit(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "no.pt", tmp_path):
        with pytest.raises(NotFoundError):
            load_for_audit(path)


@pytest.mark.parametrize("name", ["weights.pkl", "weights.pickle", "weights"])
def test_a_pickle_is_refused_without_torch_too(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "executed"
    (tmp_path / name).write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(CheckpointError, match="can run any code"):
        load_for_audit(tmp_path / name)
    assert not trace.exists()


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("holiday.jpg", b"x")
    with pytest.raises(CheckpointError, match="neither"):
        load_for_audit(tmp_path / "a.zip")


@pytest.mark.parametrize("member", ["policy.pth", "archive/data.pkl"])
def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, member: str) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(member, "w", force_zip64=True) as file,
    ):
        for _ in range(100):
            file.write(bytes(2**20))
    with pytest.raises(CheckpointError, match="not unpacked") as raised:
        load_for_audit(path)
    assert "104,857,600" in str(raised.value)


def test_without_torch_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(foreign_checkpoints, "import_module", missing)
    torch_like_archive(tmp_path / "weights.pt", pickle.dumps({}))
    with pytest.raises(MissingExtraError, match=r"reading weights.pt .* pip install 'gymnasium-solver\[torch\]'"):
        load_for_audit(tmp_path / "weights.pt")


def test_an_unsafe_torch_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        __version__ = "2.5.1+cpu"

    monkeypatch.setattr(foreign_checkpoints, "import_module", lambda _: Old)
    torch_like_archive(tmp_path / "weights.pt", pickle.dumps({}))
    with pytest.raises(CheckpointError, match=r"torch 2\.5\.1"):
        load_for_audit(tmp_path / "weights.pt")


# ---- PyTorch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def trained_model(torch: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("legacy", [False, True])
def test_nested_state_dictionaries(torch: Any, tmp_path: Path, legacy: bool) -> None:
    model, optimizer = trained_model(torch)
    content = {
        "agent": {"policy": model.state_dict()},
        "optimizer_state_dict": optimizer.state_dict(),
        "global_step": 500,
        "half": torch.ones(2, dtype=torch.bfloat16),
        "sparse": torch.ones(2, 2).to_sparse(),
        "name": "run-1",
    }
    torch.save(content, tmp_path / "agent.pt", _use_new_zipfile_serialization=not legacy)
    arrays, meta = load_for_audit(tmp_path / "agent.pt")
    np.testing.assert_array_equal(arrays["agent.policy.0.weight"], model[0].weight.detach().numpy())
    assert arrays["optimizer_state_dict.state.0.exp_avg_sq"].shape == (8, 4)
    assert arrays["optimizer_state_dict.state.0.step"] == 3
    assert arrays["half"].tolist() == [1, 1]
    assert meta["values"] == {"global_step": 500, "name": "run-1"}
    assert meta["left_out"] == ["sparse"]


def test_an_optimizer_that_made_no_step(torch: Any, tmp_path: Path) -> None:
    from gymnasium_solver.diagnose.checkpoints.audit import audit

    model, _ = trained_model(torch)
    fresh = torch.optim.Adam(model.parameters())
    torch.save({"model": model.state_dict(), "optimizer": fresh.state_dict()}, tmp_path / "a.pt")
    arrays, meta = load_for_audit(tmp_path / "a.pt")
    assert meta["empty_optimizers"] == ["optimizer"]
    findings = audit(arrays, meta | {"progress": {"updates": 100}}).findings
    assert [finding.kind for finding in findings] == ["optimizer-never-stepped"]


@pytest.mark.parametrize("override", [None, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_pickle_bomb_is_refused_and_nothing_runs(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, legacy: bool, override: str | None
) -> None:
    if override:
        monkeypatch.setenv(override, "1")
    trace = tmp_path / "executed"
    torch.save({"w": torch.ones(2), "x": Bomb(trace)}, tmp_path / "b.pt", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(CheckpointError, match="can run code") as raised:
        load_for_audit(tmp_path / "b.pt")
    assert "\n" not in str(raised.value)
    assert not trace.exists()
    torch.load(tmp_path / "b.pt", weights_only=False)  # the negative control: it is a bomb
    assert trace.exists()


def test_a_bare_pickle_bomb_named_as_weights(torch: Any, tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    (tmp_path / "b.pth").write_bytes(pickle.dumps(Bomb(trace)))
    torch_like_archive(tmp_path / "c.pth", pickle.dumps(Bomb(trace), protocol=2))
    for name in ("b.pth", "c.pth"):
        with pytest.raises(CheckpointError):
            load_for_audit(tmp_path / name)
    assert not trace.exists()


def test_a_view_that_claims_more_than_the_file_holds(torch: Any, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(1).expand(2**20, 2**20)}, tmp_path / "w.pt")
    with pytest.raises(CheckpointError, match="larger than the file"):
        load_for_audit(tmp_path / "w.pt")


def test_dictionaries_that_hold_one_another(torch: Any, tmp_path: Path) -> None:
    nested: dict[str, Any] = {"w": torch.ones(2)}
    for _ in range(60):
        nested = {"a": nested, "b": nested}  # 2^60 ways down
    nested["w"] = torch.ones(3)
    nested["itself"] = nested
    torch.save(nested, tmp_path / "n.pt")
    assert set(load_for_audit(tmp_path / "n.pt")[0]) == {"w"}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file(torch: Any, tmp_path: Path, share: float) -> None:
    model, _ = trained_model(torch)
    for legacy in (False, True):
        torch.save(model.state_dict(), tmp_path / "w.pt", _use_new_zipfile_serialization=not legacy)
        content = (tmp_path / "w.pt").read_bytes()
        (tmp_path / "w.pt").write_bytes(content[: int(share * len(content))])
        with pytest.raises(CheckpointError, match="corrupt or truncated"):
            load_for_audit(tmp_path / "w.pt")


def test_a_file_without_tensors(torch: Any, tmp_path: Path) -> None:
    torch.save({"step": 3}, tmp_path / "w.pt")
    with pytest.raises(CheckpointError, match="holds no tensors"):
        load_for_audit(tmp_path / "w.pt")


# ---- Stable-Baselines3


def sb3_archive(torch: Any, path: Path, settings: dict[str, Any], policy: Any | None = None) -> None:
    """As model.save writes it."""
    model, optimizer = trained_model(torch)
    members = {
        "policy.pth": model.state_dict() if policy is None else policy,
        "policy.optimizer.pth": optimizer.state_dict(),
        "pytorch_variables.pth": {"log_ent_coef": torch.zeros(1)},
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(settings))
        archive.writestr("_stable_baselines3_version", "2.9.0")
        for name, content in members.items():
            buffer = io.BytesIO()
            torch.save(content, buffer)
            archive.writestr(name, buffer.getvalue())


def test_an_archive_of_stable_baselines(torch: Any, tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    pickled = {":type:": "function", ":serialized:": pickle.dumps(Bomb(trace)).hex()}
    settings = {"num_timesteps": 2048, "_n_updates": 3, "tau": 0.005, "gamma": 0.99, "lr_schedule": pickled}
    sb3_archive(torch, tmp_path / "sac.zip", settings)
    arrays, meta = load_for_audit(tmp_path / "sac.zip")
    assert {"0.weight", "2.bias", "log_ent_coef", "policy.optimizer.state.0.exp_avg"} <= set(arrays)
    assert meta["source"] == "stable-baselines3"
    assert meta["progress"] == {"env_steps": 2048, "updates": 3}
    assert meta["config"]["gamma"] == 0.99
    assert "lr_schedule" not in meta["config"]
    assert not trace.exists()


def test_epochs_are_not_taken_for_gradient_steps(torch: Any, tmp_path: Path) -> None:
    sb3_archive(torch, tmp_path / "ppo.zip", {"num_timesteps": 2048, "_n_updates": 30, "n_epochs": 10})
    assert load_for_audit(tmp_path / "ppo.zip")[1]["progress"] == {"env_steps": 2048}


def test_a_bomb_in_an_archive(torch: Any, tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    sb3_archive(torch, tmp_path / "ppo.zip", {}, policy={"w": Bomb(trace)})
    with pytest.raises(CheckpointError, match=r"policy\.pth holds Python objects"):
        load_for_audit(tmp_path / "ppo.zip")
    assert not trace.exists()


def test_an_archive_within_an_archive_that_swells(torch: Any, tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(100 * 2**20))
    with zipfile.ZipFile(tmp_path / "ppo.zip", "w") as archive:
        archive.writestr("policy.pth", inner.getvalue())
    with pytest.raises(CheckpointError, match="not unpacked"):
        load_for_audit(tmp_path / "ppo.zip")


def test_a_model_of_stable_baselines_itself(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    from gymnasium_solver.diagnose.checkpoints.audit import audit

    sb3: Any = importlib.import_module("stable_baselines3")
    model = sb3.DQN("MlpPolicy", "CartPole-v1", learning_starts=50, target_update_interval=100, device="cpu", seed=0)
    model.learn(400)
    model.save(tmp_path / "dqn")
    arrays, meta = load_for_audit(tmp_path / "dqn.zip")
    assert meta["progress"]["env_steps"] == 400
    assert [finding for finding in audit(arrays, meta).findings if finding.severity != "info"] == []
    for name in [name for name in arrays if "q_net_target" in name]:
        arrays[name] = arrays[name.replace("q_net_target", "q_net")]
    assert audit(arrays, meta).findings[0].kind == "target-equals-online"
