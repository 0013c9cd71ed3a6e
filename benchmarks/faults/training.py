"""Many runs in few processes: one worker per core, pinned to it, which trains one case after another.

A run that is on record is not repeated, so an interrupted round goes on where it stopped.
"""

from __future__ import annotations

import fnmatch
import json
import math
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.cases import Case, all_cases

Records = dict[tuple[str, str, int], dict[str, Any]]  # finished runs by (case, label, seed)

RECORD = "runs.jsonl"
_RUNS_OF_A_WORKER = 40  # then a fresh process: compiled programs of hundreds of runs would fill the memory


@dataclass(frozen=True)
class Task:
    """One seed of one case, as it is or with changed fields."""

    case: str
    seed: int
    label: str = ""  # of a re-run: what was changed; "" is the case itself
    changes: Mapping[str, Any] = field(default_factory=dict)
    cause: str | None = None  # of a re-run: what it was to answer

    @property
    def key(self) -> tuple[str, str, int]:
        return self.case, self.label, self.seed

    def directory(self, work: Path) -> Path:
        folder = work / "reruns" / self.case / self.label if self.label else work / "runs" / self.case
        return folder / f"seed={self.seed}"


def read_records(work: Path) -> Records:
    path = work / RECORD
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {(record["case"], record["label"], record["seed"]): record for record in records}


def train_all(tasks: Iterable[Task], work: Path, jobs: int, only: str = "*") -> None:
    """Train what is not on record yet; each finished run is a line of runs.jsonl."""
    work.mkdir(parents=True, exist_ok=True)
    done = read_records(work)
    wanted = {task.key: task for task in tasks if fnmatch.fnmatch(task.case, only)}
    open_tasks = [task for key, task in wanted.items() if key not in done]
    started = time.perf_counter()
    for i, record in enumerate(_results(open_tasks, work, jobs), 1):
        with (work / RECORD).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(
            f"[{i}/{len(open_tasks)} {time.perf_counter() - started:.0f} s] {record['case']} {record['label']} "
            f"seed {record['seed']}: score {record['score']:.2f}, {record['status']}, {record['seconds']:.1f} s",
            flush=True,
        )


def _results(tasks: list[Task], work: Path, jobs: int) -> Iterator[dict[str, Any]]:
    if not tasks:
        return
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("TQDM_DISABLE", "1")
    context = multiprocessing.get_context("spawn")
    cores: Any = context.Queue()
    for _ in range(-(-len(tasks) // _RUNS_OF_A_WORKER) + jobs):  # each new worker takes the next core in turn
        for core in sorted(os.sched_getaffinity(0))[:jobs]:
            cores.put(core)
    with context.Pool(jobs, _start_worker, (cores, str(work)), maxtasksperchild=_RUNS_OF_A_WORKER) as pool:
        yield from pool.imap_unordered(train_task, tasks, chunksize=1)


_work = Path()


def _start_worker(cores: Any, work: str) -> None:
    global _work
    _work = Path(work)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})
    from gymnasium_solver.train import books, session
    from gymnasium_solver.train.backend import configure

    configure()
    # A report's pictures take longer than training some of these.
    books.write_report = session.write_report = lambda path: path


def train_task(task: Task) -> dict[str, Any]:
    case = all_cases()[task.case]
    begun = time.perf_counter()
    directory = task.directory(_work)
    reward = _train(case, task, directory)
    summary = _run_of(directory).summary()
    return {
        "case": task.case,
        "label": task.label,
        "seed": task.seed,
        "changes": dict(task.changes),
        "cause": task.cause,
        "score": round(case.score(reward), 4) if math.isfinite(reward) else 0.0,
        "reward": reward if math.isfinite(reward) else None,
        "solved": summary["solved"],
        "status": summary["status"],
        "steps": summary["env_steps"],
        "seconds": round(time.perf_counter() - begun, 2),
        "path": str(_run_of(directory).path.relative_to(_work)),
    }


def _train(case: Case, task: Task, directory: Path) -> float:
    """The return of the best policy on fresh episodes, in the environment's own rewards; -inf if there was none."""
    from gymnasium_solver.errors import SolverError
    from gymnasium_solver.train.session import train

    with case.planted():
        try:
            run = train(case.config(task.seed, task.changes), runs_dir=directory, command=["benchmarks/faults/run.py"])
        except SolverError:  # diverged, or the environment failed: what was reached until then counts
            best = _run_of(directory).summary()["best_reward"]
            return -math.inf if best is None else float(best)
    if case.reward_factor is not None:
        reward = run.summary()["test_reward"]
        return -math.inf if reward is None else float(reward)
    from gymnasium_solver.train.judge import evaluate_checkpoint

    # The planted reward is gone here; the policy is the same.
    return evaluate_checkpoint(run, "best", episodes=20, deterministic=True).mean


def _run_of(directory: Path) -> Any:
    from gymnasium_solver.runs.reader import Run

    newest = max(
        (path for path in directory.iterdir() if path.is_dir() and not path.is_symlink()), key=lambda p: p.name
    )
    return Run(newest)
