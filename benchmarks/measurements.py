"""The measurements: what is run, how often, and which target its result is held against."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processes import Finished, Line, resident_mb, run
from table import Row, median
from zoo import TASKS, Task, our_overrides

HERE = Path(__file__).resolve().parent
NAMES = {"sb3": "SB3", "sbx": "SBX", "rejax": "rejax", "ours": "ours"}
MODULES = {"sb3": "peers.sb3", "sbx": "peers.sbx", "rejax": "peers.rejax_ppo"}
STEPS = "train/cnt/env_steps"
EVALUATION = "val/roll/ep_rew_mean"
REPETITIONS = 3  # of a throughput: it varies less than the time to a solution
EPOCHS = 20  # rows of metrics in a throughput run of an off-policy algorithm: marks to take the time at
NEVER = 10**9
FIRST_SEED = 100  # the shipped configurations were chosen on seeds below


@dataclass
class Bench:
    """Where things are run, and the record of every run."""

    our_python: str
    peer_python: str
    peers: list[str]
    seeds: int
    quick: bool
    scratch: Path
    runs: list[dict[str, Any]] = field(default_factory=list)
    _threads: dict[str, int] = field(default_factory=dict)
    _caches: int = 0

    def take_runs(self) -> list[dict[str, Any]]:
        runs, self.runs = self.runs, []
        return runs

    def record(self, library: str, finished: Finished, **facts: Any) -> dict[str, Any]:
        """Add a run to the record. What a failed process said goes to the terminal: it may name local paths."""
        entry = {
            "library": library,
            **facts,
            "exit_code": finished.exit_code,
            "process_seconds": round(finished.seconds, 2),
        }
        self.runs.append(entry)
        print("  " + ", ".join(f"{name} {value}" for name, value in entry.items()), file=sys.stderr, flush=True)
        if finished.exit_code not in (0, 5):  # 5: trained, threshold missed
            print(finished.errors, file=sys.stderr, flush=True)
        return entry

    def peer(self, name: str, task: str, seed: int, *, steps: int | None = None, cap: float = 900.0) -> dict[str, Any]:
        """One run of a peer: throughput over `steps`, or to the solution. Its clock stops at its line of output."""
        facts = {"task": task, "seed": seed}
        arguments = ["--task", task, "--seed", str(seed), "--max-seconds", str(cap)]
        if steps is not None:
            arguments += ["--steps", str(steps)]
        if name == "sb3":
            facts["torch_threads"] = self.torch_threads(task)
            arguments += ["--threads", str(facts["torch_threads"])]
        return self._peer(name, arguments, facts, cap)

    def _peer(self, name: str, arguments: list[str], facts: dict[str, Any], cap: float) -> dict[str, Any]:
        command = [self.peer_python, "-m", MODULES[name], *arguments]
        # In the scratch directory, because MuJoCo leaves a log file where it is started; twice the cap, because the
        # clock of a peer stands still while it is evaluated.
        finished = run(command, cwd=self.scratch, env={"PYTHONPATH": str(HERE)}, timeout=2 * cap + 60)
        facts |= finished.last.data if finished.last else {}
        if finished.last and facts.get("solved"):
            seconds = finished.last.seconds - facts["paused_seconds"]
            facts["solved_seconds"] = round(seconds, 2) if seconds <= cap else None
        return self.record(name, finished, **facts)

    def torch_threads(self, task: str) -> int:
        """The faster of one and two threads for this task, tried once in short runs."""
        if task not in self._threads:
            speeds = {}
            for threads in (1, 2):
                arguments = ["--task", task, "--steps", str(TASKS[task].trial_steps), "--threads", str(threads)]
                entry = self._peer(
                    "sb3", arguments, {"task": task, "purpose": "threads", "torch_threads": threads}, 300
                )
                speeds[threads] = entry.get("warm_steps_per_second", 0.0)
            self._threads[task] = max(speeds, key=lambda threads: speeds[threads])
        return self._threads[task]

    def cache(self) -> Path:
        """An empty compilation cache."""
        self._caches += 1
        directory = self.scratch / f"cache-{self._caches}"
        directory.mkdir()
        return directory

    def train(
        self,
        ref: str,
        settings: list[str],
        cache: Path,
        *,
        timeout: float = 900.0,
        on_line: Callable[[int, Line], None] | None = None,
        plain: bool = False,
    ) -> Finished:
        """One training of ours, from the command line, printing its events as lines of JSON; `plain`: as a user sees
        it."""
        command = [self.our_python, "-m", "gymnasium_solver", "train", ref, "--runs-dir", str(self.scratch / "runs")]
        command += [] if plain else ["--events"]
        for setting in settings:
            command += ["--set", setting]
        environment = {"JAX_COMPILATION_CACHE_DIR": str(cache)}
        # Not from the caller's directory: configuration files there would take precedence over the shipped ones.
        return run(command, cwd=self.scratch, env=environment, timeout=timeout, on_line=on_line)


def events(finished: Finished, kind: str) -> list[Line]:
    return [Line(line.seconds, line.data.get("data", {})) for line in finished.lines if line.data.get("event") == kind]


def our_speed(finished: Finished, warm_from: float) -> dict[str, Any]:
    """Env steps per second: from the start of the run, and from `warm_from` env steps on (as for the peers)."""
    started = events(finished, "started")
    # The last update is followed by the final evaluation, which the peers do not have.
    epochs = [line for line in events(finished, "epoch") if EVALUATION not in line.data["metrics"]]
    if not started or len(epochs) < 2:
        return {}
    last, last_steps = epochs[-1].seconds, epochs[-1].data["metrics"][STEPS]
    warm = next((line for line in epochs if line.data["metrics"][STEPS] >= warm_from), epochs[-1])
    facts = {
        "env_steps": int(last_steps),
        "engine": started[0].data["engine"],
        "steps_per_second": round(last_steps / (last - started[0].seconds), 1),
    }
    if last > warm.seconds:
        warm_speed = (last_steps - warm.data["metrics"][STEPS]) / (last - warm.seconds)
        facts["warm_steps_per_second"] = round(warm_speed, 1)
    return facts


def our_solution(finished: Finished, threshold: float, cap: float) -> float | None:
    """Seconds from process start to the evaluation on fresh episodes that reached the threshold."""
    for line in events(finished, "evaluated"):
        if line.data["solved"] and line.data["ep_rew_mean"] >= threshold and line.seconds <= cap:
            return round(line.seconds, 2)
    return None


# --- throughput with the zoo's settings ---------------------------------------------------------------------------


def throughput(bench: Bench, name: str, steps: int, targets: dict[str, float]) -> list[Row]:
    """`targets`: the smallest ratio to each peer. Where a run begins with random actions, only the speed once it learns
    is shown: how much of a short run those actions are says nothing."""
    task = TASKS[name]
    ref = f"{task.env_id}:{task.algorithm}"
    settings = [*our_overrides(task), f"eval_freq_epochs={NEVER}", "stop_when_solved=false"]
    speeds = {"warm_steps_per_second": "once compiled", "steps_per_second": "with compilation"}
    if task.is_off_policy:
        settings.append(f"n_steps={epoch_rows(task, steps)}")
        speeds = {"warm_steps_per_second": "once learning"}
    peers = [peer for peer in ("sb3", "sbx") if peer in bench.peers]
    found: dict[str, list[dict[str, Any]]] = {library: [] for library in ("ours", *peers)}
    for seed in range(1 if bench.quick else min(bench.seeds, REPETITIONS)):
        finished = bench.train(ref, [*settings, f"max_env_steps={steps}", f"seed={seed}"], bench.cache())
        ours = our_speed(finished, task.warm_from(steps))
        found["ours"].append(bench.record("ours", finished, task=name, seed=seed, **ours))
        for peer in peers:
            found[peer].append(bench.peer(peer, name, seed, steps=steps))

    def speed(library: str, which: str) -> float | None:
        return median([entry[which] for entry in found[library] if which in entry])

    rows = []
    for peer in peers:
        threads = f" (torch threads: {bench.torch_threads(name)})" if peer == "sb3" else ""
        rows += [
            Row(
                f"{task.label}, zoo settings, {label}",
                "steps/s",
                speed("ours", which),
                peer_name=NAMES[peer] + threads,
                peer=speed(peer, which),
                at_least=targets.get(peer) if which.startswith("warm") else None,
            )
            for which, label in speeds.items()
        ]
    return rows or [
        Row(f"{task.label}, zoo settings, {label}", "steps/s", speed("ours", which)) for which, label in speeds.items()
    ]


def epoch_rows(task: Task, steps: int) -> int:
    """Steps of each environment in an epoch of ours, in whole rounds of acting and learning."""
    return task.settings["train_freq"] * max(1, steps // (EPOCHS * task.rollout))


def cartpole_throughput(bench: Bench) -> list[Row]:
    return throughput(bench, "cartpole", 25_600 if bench.quick else 100_000, {"sb3": 9.0})


def halfcheetah_throughput(bench: Bench) -> list[Row]:
    return throughput(bench, "halfcheetah", 5_120 if bench.quick else 20_480, {"sb3": 3.0})


def dqn_cartpole_throughput(bench: Bench) -> list[Row]:
    return throughput(bench, "cartpole-dqn", 6_000 if bench.quick else 20_000, {"sbx": 1.3})


def pendulum_sac_throughput(bench: Bench) -> list[Row]:
    return throughput(bench, "pendulum-sac", 600 if bench.quick else 3_000, {"sb3": 3.0, "sbx": 1.2})


def halfcheetah_sac_throughput(bench: Bench) -> list[Row]:
    return throughput(bench, "halfcheetah-sac", 1_400 if bench.quick else 3_000, {"sb3": 3.0, "sbx": 1.5})


def engines(bench: Bench) -> list[Row]:
    """The compiled engine beside the host's, taking turns: PPO with the zoo's settings on CartPole, and as shipped."""
    zoo = our_overrides(TASKS["cartpole"])
    cases = (
        ("CartPole-v1:ppo", "zoo settings", zoo, 100_000, 1.8),
        ("Acrobot-v1:ppo", "as shipped", [], 150_000, 2.0),
        ("Pendulum-v1:ppo", "as shipped", [], 150_000, 2.0),
    )
    rows = []
    for ref, what, settings, steps, least in cases:
        steps = steps // 4 if bench.quick else steps
        fixed = [*settings, f"eval_freq_epochs={NEVER}", "stop_when_solved=false", f"max_env_steps={steps}"]
        found: dict[str, list[float]] = {"compiled": [], "gymnasium": []}
        for seed in range(1 if bench.quick else min(bench.seeds, REPETITIONS)):
            for engine, speeds in found.items():
                finished = bench.train(ref, [*fixed, f"engine={engine}", f"seed={seed}"], bench.cache())
                facts = our_speed(finished, steps / 10)
                bench.record("ours", finished, task=ref, seed=seed, **facts)
                speeds += [facts["warm_steps_per_second"]] if "warm_steps_per_second" in facts else []
        compiled, host = median(found["compiled"]), median(found["gymnasium"])
        name = f"{ref.partition(':')[0]}, {what}, compiled engine"
        rows.append(Row(name, "steps/s", compiled, peer_name="ours, Gymnasium's", peer=host, at_least=least))
        if settings:
            rows.append(Row(name, "steps/s", compiled, at_least=40_000.0))
    return rows


# --- time to a solution -------------------------------------------------------------------------------------------


def fastest(found: dict[str, list[float | None]], cap: float) -> dict[str, Any]:
    """The peer with the smallest median; if none has one, the cap, which all of them exceeded."""
    medians = {peer: median(times) for peer, times in found.items()}
    solved = {peer: value for peer, value in medians.items() if value is not None}
    if solved:
        best = min(solved, key=lambda peer: solved[peer])
        return {"peer_name": NAMES[best], "peer": solved[best]}
    if not found:
        return {}
    return {"peer_name": " and ".join(NAMES[peer] for peer in found), "peer": cap, "peer_censored": True}


def count(times: list[float | None]) -> tuple[int, int]:
    return sum(value is not None for value in times), len(times)


def solutions(
    bench: Bench,
    name: str,
    peers: tuple[str, ...],
    cap: float,
    *,
    cold: float,
    warm: float | None,
    peer_seeds: int | None = None,
) -> list[Row]:
    """Our shipped configuration, evaluated on fresh episodes, against the peers. `cold`, `warm`: largest ratios."""
    task = TASKS[name]
    assert task.solved_at is not None
    ours: dict[str, list[float | None]] = {"cold": [], "warm": []}
    theirs: dict[str, list[float | None]] = {peer: [] for peer in peers if peer in bench.peers}
    for seed in range(FIRST_SEED, FIRST_SEED + bench.seeds):
        cache = bench.cache()
        for state in ("cold", "warm") if warm is not None else ("cold",):
            ref, settings = f"{task.env_id}:{task.algorithm}", [f"seed={seed}"]
            finished = bench.train(ref, settings, cache, timeout=cap + 60)
            ours[state].append(our_solution(finished, task.solved_at, cap))
            bench.record("ours", finished, task=name, seed=seed, cache=state, solved_seconds=ours[state][-1])
        for peer, times in theirs.items() if peer_seeds is None or seed < FIRST_SEED + peer_seeds else ():
            times.append(bench.peer(peer, name, seed, cap=cap).get("solved_seconds"))

    best = fastest(theirs, cap)
    rows = [
        Row(
            f"{task.label} to {task.solved_at:g}, {state} compilation cache",
            "s",
            median(ours[state]),
            at_most=bound if best else None,
            solved=count(ours[state]),
            **best,
        )
        for state, bound in (("cold", cold), ("warm", warm))
        if bound is not None
    ]
    others = (peer for peer in theirs if NAMES[peer] != best["peer_name"])
    return rows + [
        Row(
            f"{task.label} to {task.solved_at:g}, cold compilation cache",
            "s",
            median(ours["cold"]),
            solved=count(ours["cold"]),
            peer_name=f"{NAMES[peer]} ({count(theirs[peer])[0]}/{count(theirs[peer])[1]} solved)",
            peer=median(theirs[peer]) or cap,
            peer_censored=median(theirs[peer]) is None,
        )
        for peer in others
        if not best.get("peer_censored")
    ]


def cartpole_solve(bench: Bench) -> list[Row]:
    return solutions(bench, "cartpole", ("sb3", "sbx", "rejax"), cap=120.0, cold=0.40, warm=0.25)


def cartpole_prompt(bench: Bench) -> list[Row]:
    """The whole command, until the terminal is free again: with its report, and solved. SB3 stops at its last solving
    episode, before it has saved anything."""
    cap = 120.0
    ours: dict[str, list[float | None]] = {"cold": [], "warm": []}
    sb3: list[float | None] = []
    for seed in range(FIRST_SEED, FIRST_SEED + bench.seeds):
        cache = bench.cache()
        for state, times in ours.items():
            finished = bench.train("CartPole-v1:ppo", [f"seed={seed}"], cache, timeout=cap + 60, plain=True)
            solved = finished.exit_code == 0 and finished.seconds <= cap
            times.append(round(finished.seconds, 2) if solved else None)
            bench.record("ours", finished, task="cartpole", seed=seed, cache=state)
        if "sb3" in bench.peers:
            sb3.append(bench.peer("sb3", "cartpole", seed, cap=cap).get("solved_seconds"))

    what = "CartPole-v1, process start to the prompt"
    best = fastest({"sb3": sb3} if sb3 else {}, cap)
    bounds = {"cold": 0.35, "warm": 0.20}
    return [Row(f"{what}, warm", "s", median(ours["warm"]), at_most=1.6, solved=count(ours["warm"]))] + [
        Row(f"{what}, {state}", "s", median(ours[state]), at_most=bounds[state], solved=count(ours[state]), **best)
        for state in ("warm", "cold")
        if best
    ]


def lunarlander_solve(bench: Bench) -> list[Row]:
    # One seed of each peer: it takes minutes, and only sets the time that all of our seeds have to halve.
    cap = 60.0 if bench.quick else 240.0
    return solutions(bench, "lunarlander", ("sb3", "sbx"), cap, cold=0.5, warm=None, peer_seeds=1)


def pendulum_sac_solve(bench: Bench) -> list[Row]:
    return solutions(bench, "pendulum-sac", ("sbx",), 60.0 if bench.quick else 200.0, cold=0.25, warm=None)


# --- start-up and memory ------------------------------------------------------------------------------------------


def startup(bench: Bench) -> list[Row]:
    """`gsolve --help`, imports, compilation; and the peak memory of the whole shipped CartPole run."""

    def best_of(times: int, *arguments: str) -> float:
        runs = [run([bench.our_python, *arguments], cwd=bench.scratch, timeout=120) for _ in range(times)]
        bench.record("ours", runs[-1], command=" ".join(arguments))
        return min(finished.seconds for finished in runs)

    rows = [
        Row("gsolve --help", "s", best_of(5, "-m", "gymnasium_solver", "--help"), at_most=0.5),
        Row("import of training, JAX included", "s", best_of(5, "-c", "import gymnasium_solver.train.session")),
    ]
    cache = bench.cache()
    for state in ("cold", "warm"):
        finished = bench.train("CartPole-v1:ppo", ["seed=0"], cache)
        compiled = events(finished, "compiled")
        seconds = round(compiled[0].data["seconds"], 2) if compiled else None
        bench.record("ours", finished, cache=state, compile_seconds=seconds, peak_mb=round(finished.peak_mb))
        rows.append(Row(f"CartPole-v1 compilation, {state} cache", "s", seconds))
        if state == "cold":
            rows.append(Row("CartPole-v1 run, peak memory", "MB", round(finished.peak_mb), at_most=600.0))
    return rows


def memory(bench: Bench) -> list[Row]:
    """Memory late in a long run against early in it."""
    early, late = (100_000, 1_000_000) if bench.quick else (1_000_000, 10_000_000)
    sizes: list[tuple[int, float]] = []

    def sample(pid: int, line: Line) -> None:
        if line.data.get("event") == "epoch":
            steps = line.data["data"]["metrics"][STEPS]
            if not sizes and steps >= early:
                sizes.append((steps, resident_mb(pid)))
            elif sizes:
                sizes[1:] = [(steps, resident_mb(pid))]

    settings = [f"max_env_steps={late}", "stop_when_solved=false", "eval_freq_epochs=1000", "seed=0"]
    finished = bench.train("CartPole-v1:ppo", settings, bench.cache(), timeout=7200, on_line=sample)
    bench.record("ours", finished, resident_mb=[(steps, round(size)) for steps, size in sizes])
    first, last = (sizes[0][1], sizes[1][1]) if len(sizes) == 2 else (None, None)
    what = f"memory after {late / 1e6:g} M steps against {early / 1e6:g} M"
    return [Row(what, "MB", last, peer_name="ours, early", peer=first, at_most=1.05)]


def replay_memory(bench: Bench) -> list[Row]:
    """What a process grows by when it fills a replay. A tenth of the frames of a usual replay: a million take 7 GB."""

    def fill(kind: str, transitions: int) -> dict[str, Any]:
        command = [bench.our_python, str(HERE / "replay_memory.py"), kind, str(transitions)]
        finished = run(command, cwd=bench.scratch, timeout=300)
        return bench.record("ours", finished, kind=kind, **(finished.last.data if finished.last else {}))

    small, frames = fill("cartpole", 1_000_000), fill("frames", 100_000)
    return [
        Row("replay of 1 M CartPole-v1 transitions", "MB", small.get("grown_mb"), at_most=100.0),
        Row(
            "replay of 100 k (a tenth of 1 M) stacks of 84×84×4",
            "MB",
            frames.get("grown_mb"),
            peer_name="one frame each",
            peer=frames.get("frames_mb"),
            at_most=1.01,
        ),
    ]


ALL: dict[str, Callable[[Bench], list[Row]]] = {
    "startup": startup,
    "cartpole-throughput": cartpole_throughput,
    "engines": engines,
    "cartpole-solve": cartpole_solve,
    "cartpole-prompt": cartpole_prompt,
    "halfcheetah-throughput": halfcheetah_throughput,
    "lunarlander-solve": lunarlander_solve,
    "dqn-cartpole-throughput": dqn_cartpole_throughput,
    "pendulum-sac-throughput": pendulum_sac_throughput,
    "pendulum-sac-solve": pendulum_sac_solve,
    "halfcheetah-sac-throughput": halfcheetah_sac_throughput,
    "replay-memory": replay_memory,
    "memory": memory,
}
