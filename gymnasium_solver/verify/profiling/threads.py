"""One thread or one per core: a process has its threads for life, so two of them take turns at the same training.

Run as a module it is one of the two: JSON lines in, JSON lines out.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import describe
from gymnasium_solver.errors import SolverError
from gymnasium_solver.processes import Child, cores, module
from gymnasium_solver.verify.profiling.trials import TURNS, WORTH, throughput, window_seconds

CLOSING_SECONDS = 1.0
NPROC = "NPROC"  # what XLA makes as many threads as


def compare_threads(
    config: Config, directory: Path, seconds: float, say: Callable[[str], None], notes: list[str]
) -> dict[str, Any] | None:
    """`threads` of the document; None where there is nothing to choose, or where it could not be measured."""
    import jax

    most = len(cores()) or os.cpu_count() or 1
    if most == 1 or jax.default_backend() != "cpu":
        return None
    say(f"{TURNS} turns of one thread against {most}")
    order = json.dumps({"fields": to_dict(config), "directory": str(directory), "seconds": window_seconds(seconds)})
    turns: list[tuple[float, float]] = []
    try:
        with _trainer(1) as one, _trainer(most) as all_cores:
            for turn in range(TURNS):
                sides = (one, all_cores) if turn % 2 == 0 else (all_cores, one)
                pace = {side: side(order) for side in sides}
                turns.append((pace[one], pace[all_cores]))
    except SolverError as error:
        notes.append(f"threads were not compared: {error}")
        return None
    return judged(turns, most, chosen(config, most), config)


def chosen(config: Config, most: int) -> int:
    """Threads that a training of the config has by itself."""
    from gymnasium_solver.train.backend import threads_for

    asked = os.environ.get(NPROC, "")
    return int(asked) if asked.isdigit() else threads_for(config, describe(config)) or most


def judged(turns: Sequence[tuple[float, float]], most: int, taken: int, config: Config) -> dict[str, Any]:
    """`turns`: steps per second with one thread and with `most`. Only a gain that every turn showed is one; without,
    one thread leaves the other cores to others."""
    gains = [many / one for one, many in turns]
    gain = statistics.median(gains)
    best = most if gain >= WORTH and min(gains) > 1 else 1
    if best == most or (gain <= 1 / WORTH and max(gains) < 1):
        ratios = sorted(gains if best == most else [1 / gain for gain in gains])
        words = f"{best} of {most} threads: {statistics.median(ratios):.2f} times the steps per second of "
        words += f"{1 if best == most else most} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    else:
        words = f"1 of {most} threads: more are not certain to be faster ({min(gains):.2f} to {max(gains):.2f} times "
        words += "from turn to turn), and the other cores stay free"
    command = f"{NPROC}={best} gsolve train {config.env_id}:{config.algo_id}"
    return {
        "cores": most,
        "chosen": taken,
        "best": best,
        "steps_per_second": {"one": [one for one, _ in turns], "all": [many for _, many in turns]},
        "gain": {"low": min(gains), "mid": gain, "high": max(gains)},
        "verdict": f"{words}; " + ("a training takes as many by itself" if best == taken else command),
    }


@contextlib.contextmanager
def _trainer(threads: int) -> Iterator[Callable[[str], float]]:
    """Takes an order and answers with steps per second."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    child = Child(
        module("gymnasium_solver.verify.profiling.threads"), "stdout", lines.put,
        takes_orders=True, environment={NPROC: str(threads)},
    )  # fmt: skip

    def answer() -> dict[str, Any]:
        if (line := lines.get()) is None:
            code, complaints = child.wait()
            last = complaints.strip().splitlines()[-1:]
            raise SolverError(": ".join([f"the process with {threads} threads ended with exit code {code}", *last]))
        return dict(json.loads(line))

    def pace(order: str) -> float:
        child.say(order)
        found = answer()
        if "error" in found:
            raise SolverError(found["error"])
        return float(found["steps_per_second"])

    try:
        answer()  # it has started, and takes no more of the other's time
        yield pace
    finally:
        child.dismiss()
        child.wait(CLOSING_SECONDS)


def main() -> None:
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for what environments print
    from gymnasium_solver.train import session  # noqa: F401  (JAX is imported before the first turn)

    print(json.dumps({"ready": True}), file=messages, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            config = build_config(order["fields"], "the profiled config")
            pace = throughput(config, Path(order["directory"]), order["seconds"]).steps_per_second
            answer: dict[str, Any] = {"steps_per_second": pace}
        except SolverError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=messages, flush=True)


if __name__ == "__main__":
    main()
