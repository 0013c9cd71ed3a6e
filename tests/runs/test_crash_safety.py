"""kill -9, a full disk and leftovers of both: the run reads, and it resumes."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.errors import SolverError
from gymnasium_solver.runs.reader import Run, find_run
from gymnasium_solver.runs.writer import RunWriter

pytestmark = pytest.mark.integration

NewRun = Callable[..., RunWriter]

# Writes as fast as it can, everything a training run writes; continues the run that is there.
BUSY = """
import sys, numpy as np
from pathlib import Path
from gymnasium_solver.runs import writer as module
from gymnasium_solver.runs.reader import list_runs
module.HEARTBEAT_SECONDS = 0.0
runs_dir = Path(sys.argv[1])
runs = list_runs(runs_dir)
if runs:
    epoch = runs[0].read_checkpoint("last")[1]["epoch"] if runs[0].checkpoints() else 0
    run = module.RunWriter.reopen(runs[0].path, epoch)
else:
    epoch, run = 0, module.RunWriter.create(runs_dir, {"env_id": "E-v0", "algo_id": "ppo", "seed": 0}, command=[])
print("writing", flush=True)
first = epoch
while True:
    epoch += 1
    row = {"train/cnt/epochs": epoch, "train/cnt/env_steps": epoch * 8, **{f"m{i}": epoch / 7 for i in range(60)}}
    if epoch % 3 == 0:
        row[f"late/{epoch}"] = 1.0
    run.metrics(row)
    run.log("info", f"epoch {epoch}")
    run.heartbeat(env_steps=epoch * 8)
    if epoch % 2 == 0:
        arrays = {"w": np.full(10_000, epoch, np.float32)}
        run.checkpoint([f"epoch={epoch % 4}", "last", "best"], arrays, {"epoch": epoch})
"""


def test_killed_at_any_moment_a_run_reads_and_resumes(runs_dir: Path) -> None:
    moments = random.Random(0)
    reached = 0
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", BUSY, str(runs_dir)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        time.sleep(moments.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()

        run = find_run("@last", runs_dir)
        assert run.status["status"] == "crashed"
        epochs = run.metrics.to_dict().get("train/cnt/epochs", np.empty(0))
        assert epochs.tolist() == list(range(1, len(epochs) + 1))
        assert run.metrics.skipped_lines == 0
        for name in run.checkpoints():
            arrays, meta = run.read_checkpoint(name)
            assert (arrays["w"] == meta["epoch"]).all()
        if "last" in run.checkpoints():
            assert len(epochs) >= run.read_checkpoint("last")[1]["epoch"]
        assert len(epochs) >= reached - 2  # no more is lost than what came after the last checkpoint
        reached = len(epochs)
    assert reached > 8
    RunWriter.reopen(run.path, reached).close()
    assert not list(run.path.rglob(".*.tmp"))


def test_a_full_disk_is_one_clear_message_and_costs_one_row(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = new_run(rows=5)
    before = (writer.path / "metrics.csv").read_bytes()
    real_write = os.write

    def nearly_full(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", full)
        return real_write(descriptor, data[:7])

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(SolverError, match=r"metrics\.csv: No space left.*free some space, then: gsolve train --resume"):
        writer.metrics({"train/cnt/env_steps": 1536, "train/cnt/epochs": 6})
    assert (writer.path / "metrics.csv").read_bytes() == before
    monkeypatch.setattr(os, "write", real_write)
    writer.metrics({"train/cnt/env_steps": 1536, "train/cnt/epochs": 6})
    assert Run(writer.path).metrics["train/cnt/epochs"].tolist() == [1, 2, 3, 4, 5, 6]


def test_a_real_write_that_is_cut_short_leaves_whole_rows(runs_dir: Path) -> None:
    """The kernel itself refuses: a limit on the size of files, met in the middle of a row."""
    script = """
import resource, signal, sys
from pathlib import Path
from gymnasium_solver.errors import SolverError
from gymnasium_solver.runs.writer import RunWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
run = RunWriter.create(Path(sys.argv[1]), {"env_id": "E-v0", "algo_id": "ppo", "seed": 0}, command=[])
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    for epoch in range(10_000):
        run.metrics({"train/cnt/epochs": epoch, "train/cnt/env_steps": epoch / 3})
except SolverError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script, str(runs_dir)], capture_output=True, text=True, check=True)
    assert "metrics.csv: File too large" in done.stdout
    run = find_run("@last", runs_dir)
    content = (run.path / "metrics.csv").read_bytes()
    assert 4900 < len(content) <= 5000
    assert content.endswith(b"\n")


@pytest.mark.parametrize("what", ["status", "checkpoint", "column"])
def test_a_full_disk_leaves_the_former_file(new_run: NewRun, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    writer = new_run(rows=5)
    writer.checkpoint(["last"], {"w": np.ones(3)}, {"epoch": 5})
    files = {path: path.read_bytes() for path in writer.path.rglob("*") if path.is_file()}

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SolverError, match="free some space"):
        if what == "status":
            writer.status("failed")
        elif what == "checkpoint":
            writer.checkpoint(["last"], {"w": np.zeros(3)}, {"epoch": 6})
        else:
            writer.metrics({"new": 1.0})
    assert {path: path.read_bytes() for path in writer.path.rglob("*") if path.is_file()} == files


def test_a_log_line_never_fails_a_run(new_run: NewRun) -> None:
    writer = new_run()
    (writer.path / "run.log").symlink_to("/dev/full")
    writer.log("error", "no space left")
    assert Run(writer.path).config["env_id"] == "CartPole-v1"
