"""What servers look up: by name, in their directory, and nothing outside it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gymnasium_solver.api import served
from gymnasium_solver.api.groups import Group
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs.reader import Run
from tests.made_runs import HEALTHY, write_run


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def make_group(runs_dir: Path, name: str, mark: str = "experiment.json", content: str = "{}") -> Path:
    path = runs_dir / name
    path.mkdir(parents=True)
    (path / mark).write_text(content)
    return path


def test_runs_by_id_beginning_and_last(runs_dir: Path) -> None:
    run = write_run(runs_dir, HEALTHY)
    for ref in (run.run_id, run.run_id[:-2], "@last"):
        assert served.run(ref, runs_dir).run_id == run.run_id
        assert isinstance(served.run_or_group(ref, runs_dir), Run)


@pytest.mark.parametrize("ref", ["", ".", "..", "../out", "a/b", "a\\b", "~", "~root", "/etc", "x\0y", "x" * 256])
def test_what_is_no_name(runs_dir: Path, ref: str) -> None:
    make_group(runs_dir.parent, "out")
    for find in (served.run, served.run_or_group, served.experiment):
        with pytest.raises(NotFoundError, match="not an id"):
            find(ref, runs_dir)
    assert not served.is_experiment(ref, runs_dir)


def test_nothing_outside_is_found(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = write_run(runs_dir.parent / "elsewhere", HEALTHY)
    shutil.copytree(outside.path, runs_dir.parent / "beside")
    make_group(runs_dir.parent, "group", "group.json")
    (runs_dir / "link").symlink_to(outside.path)
    monkeypatch.chdir(runs_dir.parent)  # where runs and groups are looked for too
    for ref in ("link", "beside", "group"):
        with pytest.raises(NotFoundError):
            served.run_or_group(ref, runs_dir)


def test_a_group_with_a_run_that_leads_out_is_refused(runs_dir: Path) -> None:
    make_group(runs_dir, "seeds", "group.json")
    run = write_run(runs_dir, HEALTHY)
    status = json.loads((run.path / "status.json").read_text())
    (run.path / "status.json").write_text(json.dumps({**status, "group": "seeds"}))
    assert isinstance(served.run_or_group("seeds", runs_dir), Group)
    (run.path / "run.log").unlink(missing_ok=True)
    (run.path / "run.log").symlink_to("/etc/hostname")
    with pytest.raises(NotFoundError, match=r"run\.log is a link out of it"):
        served.run_or_group("seeds", runs_dir)


def test_experiments_are_listed_newest_first(runs_dir: Path) -> None:
    make_group(runs_dir, "20260101-000000-solve-1111")
    make_group(runs_dir, "20260301-000000-verify-2222")
    make_group(runs_dir, "20260105-000000-seeds-3333", "group.json")  # no experiment
    named = make_group(runs_dir, "by-name", "study.db")
    os.utime(named, (1_770_000_000, 1_770_000_000))  # 2 February 2026
    assert [group.group_id for group in served.experiments(runs_dir)] == [
        *("20260301-000000-verify-2222", "by-name", "20260101-000000-solve-1111"),
    ]
    assert served.experiment("by-name", runs_dir).path == named
    assert served.experiment("20260301", runs_dir).group_id == "20260301-000000-verify-2222"
    for ref, words in (("2026", "2 experiments begin with"), ("none", "there is no experiment"), ("20260105", "no")):
        with pytest.raises(NotFoundError, match=words):
            served.experiment(ref, runs_dir)
    assert [served.is_experiment(name, runs_dir) for name in ("by-name", "20260105-000000-seeds-3333", "")] == [
        *(True, False, False),
    ]


@pytest.mark.parametrize("mark", ["experiment.json", "study.db", "study.db-wal"])
def test_an_experiment_that_leads_out_is_not_listed(runs_dir: Path, mark: str) -> None:
    path = make_group(runs_dir, "own", "study.db")
    (runs_dir.parent / "secret").write_text("secret")
    (path / mark).unlink(missing_ok=True)
    (path / mark).symlink_to(runs_dir.parent / "secret")
    if mark == "experiment.json":
        (path / "study.db").unlink()
    assert served.experiments(runs_dir) == []
    with pytest.raises(NotFoundError):
        served.experiment("own", runs_dir)


def test_a_run_that_is_deleted_meanwhile(runs_dir: Path) -> None:
    run = write_run(runs_dir, HEALTHY)
    with pytest.raises(ZeroDivisionError), served.still_there(run):
        raise ZeroDivisionError  # no fault of a run that is there
    gone = pytest.raises(NotFoundError, match="was deleted while it was read; look again")
    with gone, served.still_there(run, "; look again"):
        shutil.rmtree(run.path)
    with pytest.raises(NotFoundError, match="was deleted"), served.still_there(run):
        raise OSError
