"""A process that trains what it is told to, one training after another: JSON lines in, JSON lines out.

It starts once and stays, because importing JAX takes longer than many a training. When its input ends, the one who
gave the orders is gone: it saves what it is at, and goes too.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

UPDATES_A_SECOND = 4
GONE = ""  # nobody is left to report to: an interruption, as by Ctrl-C, and no reason to keep


def main() -> None:
    # What environments print goes to stderr: stdout is for messages.
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported; a worker has one core
    orders = _Orders(sys.stdin)
    import_module("gymnasium_solver.train.session")  # while the first order is on its way
    while (order := orders.next()) is not None:
        _send(messages, done=_train(order, orders.stop, messages))


class _Orders:
    """Read by a thread of their own, so that a request to stop is heard during a training."""

    def __init__(self, stream: TextIO) -> None:
        self.stop: list[str] = []  # why the training is to end; empty: it goes on
        self._waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            order = json.loads(line)
            if "stop" in order:
                self.stop.append(order["stop"])
            else:
                self._waiting.put(order)
        self.stop.append(GONE)
        self._waiting.put(None)

    def next(self) -> dict[str, Any] | None:
        order = self._waiting.get()
        if order is not None:
            self.stop[:] = [reason for reason in self.stop if reason == GONE]  # what went before is over
        return order


def _send(messages: TextIO, **message: Any) -> None:
    try:
        messages.write(json.dumps(message, default=float) + "\n")
        messages.flush()
    except OSError:  # nobody listens any more; the end of the input says so too
        pass


def _train(order: Mapping[str, Any], stop: list[str], messages: TextIO) -> dict[str, Any]:
    import jax

    from gymnasium_solver.config.load import build_config
    from gymnasium_solver.errors import DivergedError, SolverError
    from gymnasium_solver.metrics.clocks import clock_of
    from gymnasium_solver.recommend.monitor import Monitor
    from gymnasium_solver.train.session import Event, train

    begun, told, path = time.perf_counter(), 0.0, ""
    reached_after: float | None = None
    cap, threshold, clock = order.get("cap"), None, clock_of(order["fields"])

    def hear(event: Event) -> None:
        nonlocal told, path, reached_after, threshold
        now = time.perf_counter()
        if event.kind == "started":
            path, threshold = event.data["path"], event.data["threshold"]
            _send(messages, kind="started", data={"path": path})
        elif event.kind == "evaluated":
            reward = event.data["ep_rew_mean"]
            if reached_after is None and threshold is not None and reward >= threshold:
                reached_after = now - begun
            _send(messages, kind="evaluated", data={"steps": event.data[clock.name], "reward": reward})
        elif event.kind == "epoch":
            steps = event.data["metrics"][clock.column]
            if cap is not None and steps >= cap:
                stop.append("cap")
            if now - told >= 1 / UPDATES_A_SECOND:
                told = now
                reward = event.data["metrics"].get("train/roll/ep_rew_mean")
                _send(messages, kind="epoch", data={"steps": steps, "reward": reward})

    error, status = "", "failed"
    try:
        config = build_config(dict(order["fields"]), order["label"])
        run = train(
            config,
            runs_dir=Path(order["runs_dir"]),
            group=order.get("group"),
            on_event=hear,
            command=order.get("command"),
            make_monitor=Monitor if order.get("stop_on") else None,
            stop_on=order.get("stop_on"),
            stop_when=lambda: stop[0] if stop else None,
            report=False,
        )
        status = run.status["status"]
    except DivergedError as failure:
        error, status = str(failure), "diverged"
    except SolverError as failure:
        error, status = str(failure), "failed"
    except Exception as failure:  # a worker outlives what breaks in an environment or a config
        error, status = f"{type(failure).__name__}: {failure}", "failed"
    finally:
        jax.clear_caches()  # compiled for this training alone
    done = {"status": status, "error": error, "path": path, "seconds": time.perf_counter() - begun}
    return done | _measured(path, reached_after)


def _measured(path: str, reached_after: float | None) -> dict[str, Any]:
    """What the run brought, from its files."""
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.runs.report import final_reward, steps_to_threshold

    if not path:
        return {}
    run = Run(Path(path))
    summary = run.summary()
    return {
        "clock": summary["clock"],
        "env_steps": summary["progress"] or 0,
        "solved": summary["solved"],
        "final_reward": final_reward(summary),
        "best_reward": summary["best_reward"],
        "steps_to_threshold": steps_to_threshold(run, summary["threshold"]),
        "seconds_to_threshold": reached_after,
        "threshold": summary["threshold"],
    }


if __name__ == "__main__":
    main()
