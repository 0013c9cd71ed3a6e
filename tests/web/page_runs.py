"""What the page shows in tests: runs without training, one of them an attack, the history of a solve, and a sweep."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import Locator, Page, expect

from gymnasium_solver.runs.writer import RunWriter
from tests.api.made_sweep import make_sweep
from tests.made_runs import FAILING, HEALTHY, _config, write_run

ATTACK = "<img src=x onerror=window.pwned=1>"
EXPERIMENT, SWEEP = "20260101-000000-solve-abcd", "by-name"
RUNS = 5  # in the list
Open = Callable[..., Page]


class Site(NamedTuple):
    address: str
    ids: dict[str, str]  # of the runs, by what they are
    runs_dir: Path


def make_runs(runs_dir: Path) -> dict[str, str]:
    """Two healthy seeds, two that failed, one whose every text is an attack, a solve and a sweep."""
    made = {
        "good": write_run(runs_dir, HEALTHY, solved=True, seed=1),
        "good2": write_run(runs_dir, HEALTHY, solved=True, seed=2),
        "bad": write_run(runs_dir, FAILING, seed=1, policy_lr=1e-6),
        "bad2": write_run(runs_dir, FAILING, seed=2, policy_lr=1e-6),
        "hostile": write_run(runs_dir, FAILING | {f"train/metrics/{ATTACK}": HEALTHY["train/loss/policy"]}, seed=9),
    }
    path = made["hostile"].path
    (path / "run.log").write_text(f"2026-01-01 ERROR {ATTACK}\n")
    (path / "report.md").write_text(
        f"# {ATTACK}\n\n| {ATTACK} |\n|---|\n| {ATTACK} |\n\n![{ATTACK}](javascript:alert)\n"
    )
    edit(path / "config.json", env_id=ATTACK, env_kwargs={ATTACK: ATTACK})
    edit(path / "status.json", error=ATTACK, group=ATTACK)
    ids = {name: run.run_id for name, run in made.items()}
    directory = runs_dir / EXPERIMENT
    directory.mkdir()
    (directory / "experiment.json").write_text(json.dumps(solve_history(ids["good"], ids["bad"])))
    if find_spec("optuna") is not None:
        make_sweep(runs_dir, SWEEP, runs=[ids["good"], ids["good2"]], error=ATTACK)
    return ids


@contextmanager
def running(runs_dir: Path) -> Iterator[RunWriter]:
    """A run that this process writes, for as long as the block."""
    writer = RunWriter.create(runs_dir, _config("CartPole-v1:ppo", {"seed": 77}), command=["test"])
    try:
        yield writer
    finally:
        writer.close()
        shutil.rmtree(writer.path)


@contextmanager
def experiment(runs_dir: Path, record: dict[str, Any]) -> Iterator[str]:
    """Its name, for as long as the block."""
    path = runs_dir / f"20260202-000000-{record['kind']}-ffff"
    path.mkdir()
    try:
        (path / "experiment.json").write_text(json.dumps(record))
        yield path.name
    finally:
        shutil.rmtree(path)


def lengthen(metrics: Path, thousands: int) -> None:
    """Rows of noise in place of those that are there, a step apart."""
    names = metrics.read_text().splitlines()[0].split(",")
    place = names.index("train/cnt/env_steps")
    rows = [[f"{value:.5g}" for value in row] for row in np.random.default_rng(0).normal(size=(1000, len(names)))]
    ends = [(",".join([*row[:place], ""]), ",".join(["", *row[place + 1 :]])) for row in rows]
    with metrics.open("w") as file:
        file.write(",".join(names) + "\n")
        for start in range(0, 1000 * thousands, 1000):
            file.writelines(f"{left}{start + index}{right}\n" for index, (left, right) in enumerate(ends))


def edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def solve_history(good: str, bad: str) -> dict[str, Any]:
    def attempt(number: int, run: str, best: float, **more: Any) -> dict[str, Any]:
        result = {"status": "completed", "error": "", "best_reward": best, "env_steps": 50_000, "seconds": 3.0}
        base = {
            "number": number,
            "label": f"CartPole-v1:ppo {number}",
            "why": "shipped",
            "follows": None,
            "cause": None,
        }
        return {**base, "result": result, "run": run, "verdict": "failing", "causes": [], "evaluation": None, **more}

    causes = [{"cause": "learning-rate-too-low", "confidence": 0.9}]
    second = {"follows": 1, "cause": "learning-rate-too-low", "why": f"the first learnt nothing {ATTACK}"}
    fields = {"policy_lr": {"start": 0.002, "end": 0.0}, "seed": 1}
    return {
        "experiment": EXPERIMENT,
        "kind": "solve",
        "status": "solved",
        "env_id": "CartPole-v1",
        "threshold": 475.0,
        "aim": "a mean return of 475",
        "solved": True,
        "verdict": "CartPole-v1 is solved",
        "solution": {
            "attempt": 2,
            "run": good,
            "env_id": "CartPole-v1",
            "algo_id": "ppo",
            "set": fields,
            "cli": "gsolve train x",
        },
        "attempts": [attempt(1, bad, 22.0, causes=causes), attempt(2, good, 500.0, **second)],
        "trainings": 2,
        "duration_s": 6.0,
    }


def go(page: Page, place: str) -> None:
    """To another place of the page, once what is there has been read."""
    page.goto(page.url.split("#")[0] + place)
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .loading")).to_have_count(0)


def row(page: Page, run_id: str) -> Locator:
    return page.locator(f"tr[data-run='{run_id}']")


def rows(page: Page) -> Locator:
    return page.locator("tr[data-run]")
