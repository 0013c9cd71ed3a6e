"""What a group or an experiment came to, and that all its seeds are scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver import api
from gymnasium_solver.api.groups import Group
from gymnasium_solver.api.solutions import solution_of
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs import checkpoints
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.verify.scoring import card
from tests.made_runs import HEALTHY, write_run


def train(runs_dir: Path, group: str, lr: float, seed: int, status: str = "completed", saved: bool = True) -> Run:
    run = write_run(runs_dir, HEALTHY, seed=seed, policy_lr=lr)
    record = json.loads((run.path / "status.json").read_text())
    (run.path / "status.json").write_text(json.dumps({**record, "group": group, "status": status}))
    if saved:
        checkpoints.save(run.path / "checkpoints", ["best"], {"w": np.zeros(2)}, {})
    return run


def experiment(runs_dir: Path, trials: dict[str, list[Run]], **record: Any) -> Group:
    path = runs_dir / "20260101-000000-experiment-abcd"
    path.mkdir()
    (path / "experiment.json").write_text(json.dumps(record))
    lines = [{"label": label, "path": f"/moved/{run.run_id}"} for label, runs in trials.items() for run in runs]
    (path / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Group(path)


@pytest.fixture
def sides(tmp_path: Path) -> dict[str, list[Run]]:
    """The lowest seed is of the configuration that was not chosen."""
    group = "20260101-000000-experiment-abcd"
    before = [train(tmp_path, group, 1e-4, seed) for seed in (1, 11)]
    after = [train(tmp_path, group, 1e-3, seed) for seed in (2, 12, 13)]
    return {"baseline": before, "change": after, "tuned": after}


VERDICTS = {
    "better": {"verdict": {"outcome": "better", "side": "B"}},
    "none": {"verdict": {"outcome": "no difference shown", "side": "B"}},
}


@pytest.mark.parametrize(
    ("record", "side"),
    [
        ({"kind": "optimize", "status": "completed", "winner": "tuned"}, "tuned"),
        ({"kind": "optimize", "status": "completed", "winner": None}, "baseline"),
        ({"kind": "verify", "status": "completed", "comparison": VERDICTS["better"]}, "change"),
        ({"kind": "verify", "status": "completed", "comparison": VERDICTS["none"]}, "baseline"),
        ({"kind": "verify", "status": "no verdict", "comparison": VERDICTS["better"]}, "baseline"),
    ],
)
def test_the_configuration_an_experiment_chose(
    tmp_path: Path, sides: dict[str, list[Run]], record: dict[str, Any], side: str
) -> None:
    group = experiment(tmp_path, sides, **record)
    assert solution_of(group).run_id in {run.run_id for run in sides[side]}


def test_the_run_that_solved_it(tmp_path: Path, sides: dict[str, list[Run]]) -> None:
    solution = sides["tuned"][1].run_id
    group = experiment(tmp_path, {}, kind="solve", status="solved", solution={"run": solution})
    assert solution_of(group).run_id == solution


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "solve", "status": "not solved", "solution": None},
        {"kind": "solve", "status": "running", "pid": 1, "process": "another"},
        {"kind": "optimize", "status": "interrupted"},
        {"kind": "verify", "status": "failed"},
        {},
    ],
)
def test_an_experiment_that_chose_nothing(tmp_path: Path, sides: dict[str, list[Run]], record: dict[str, Any]) -> None:
    group = experiment(tmp_path, sides, **record)
    with pytest.raises(NotFoundError, match=rf"has chosen no configuration; name one .* gsolve show {group.group_id}"):
        solution_of(group)


def test_the_winner_of_a_sweep_unless_fresh_seeds_refute_it(
    tmp_path: Path, sides: dict[str, list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = ({"runs": [run.run_id for run in sides[side]]} for side in ("baseline", "tuned"))
    record = {"kind": "sweep", "best": after, "base": before, "confirmation": None}
    group = experiment(tmp_path, {})
    for verdict, chosen in ((None, after), ({"verdict": "better"}, after), ({"verdict": "worse"}, before)):
        found = {**record, "confirmation": verdict}
        monkeypatch.setattr(Group, "record", found)
        assert solution_of(group).run_id in chosen["runs"]
    monkeypatch.setattr(Group, "record", {**record, "best": None, "base": None})
    with pytest.raises(NotFoundError, match="has chosen no configuration"):
        solution_of(group)


def test_a_group_of_seeds_whose_first_has_no_policy(tmp_path: Path) -> None:
    path = tmp_path / "20260101-000000-seeds-abcd"
    path.mkdir()
    (path / "group.json").write_text('{"status": "completed"}')
    train(tmp_path, path.name, 1e-3, 1, status="failed", saved=False)
    with pytest.raises(NotFoundError, match=r"no run of the group .* has a checkpoint"):
        solution_of(Group(path))
    train(tmp_path, path.name, 1e-3, 2, status="interrupted")
    whole = train(tmp_path, path.name, 1e-3, 3)
    assert solution_of(Group(path)).run_id == whole.run_id


def test_all_seeds_of_what_was_chosen_are_scored(
    tmp_path: Path, sides: dict[str, list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, list[Run]]] = []

    def score(ref: str, **options: Any) -> dict[str, Any]:
        _, checkpoint, runs = card.find_solution(ref, options["runs_dir"])
        asked.append((checkpoint, runs))
        return {"notes": []}

    monkeypatch.setattr(card, "score", score)
    group = experiment(tmp_path, sides, kind="optimize", status="completed", winner="tuned", verdict="it is better")
    wanted = [run.run_id for run in sides["tuned"]]
    for ref in (group, group.group_id, f"{group.group_id}/@best"):
        document = api.score(ref, runs_dir=tmp_path)
        checkpoint, runs = asked.pop()
        assert (checkpoint, [run.run_id for run in runs]) == ("best", wanted)
        assert ["it is better" in note for note in document["notes"]] == [True]  # some of these seeds chose it
    one = sides["baseline"][0]
    assert api.score(one, runs_dir=tmp_path) == {"notes": []}
    assert [run.run_id for run in asked.pop()[1]] == [run.run_id for run in sides["baseline"]]
