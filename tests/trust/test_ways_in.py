"""Every way in by which a file could name code: closed, it runs none; opened, it would, so the list means something."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from gymnasium_solver import api, trust
from gymnasium_solver.cli.main import main
from gymnasium_solver.runs.reader import Run
from tests.trust.conftest import Trap

pytestmark = pytest.mark.integration

Way = Callable[[Trap], object]


def gsolve(*words: str) -> Callable[[Trap, Run], object]:
    """A command line about a run."""
    return lambda trap, run: main([word.replace("RUN", run.run_id) for word in words])


def tool(name: str, **arguments: Any) -> Callable[[Trap, Run], object]:
    """A tool of the MCP server, and the end of what it starts."""

    def ask(trap: Trap, run: Run) -> object:
        pytest.importorskip("mcp", reason="the [mcp] extra is not installed")
        from gymnasium_solver.mcp.server import make_server
        from tests.mcp.talking import ask

        filled = {key: run.run_id if value == "RUN" else value for key, value in arguments.items()}
        answer = ask(make_server(trap.runs_dir, allow_code=trust.allowed_by_variable()), name, **filled)
        from gymnasium_solver.api.jobs import list_jobs

        while any(job.is_running for job in list_jobs(trap.runs_dir)):
            time.sleep(0.05)
        return answer

    return ask


def episode(*, read_only: bool) -> Callable[[Trap, Run], object]:
    def get(trap: Trap, run: Run) -> object:
        pytest.importorskip("fastapi", reason="the [web] extra is not installed")
        from starlette.testclient import TestClient

        from gymnasium_solver.web.app import create_app
        from gymnasium_solver.web.settings import Settings

        modules = trust.allowed_by_variable()
        settings = Settings(trap.runs_dir, read_only=read_only, allow_code=modules)
        with TestClient(create_app(settings), base_url="http://127.0.0.1:8080", client=("127.0.0.1", 1)) as client:
            answer = client.get(f"/api/runs/{run.run_id}/episode")
            assert answer.status_code >= 400
            return answer

    return get


# What is about a run whose config.json names the code.
OF_A_RUN: dict[str, Callable[[Trap, Run], object]] = {
    "evaluate": gsolve("evaluate", "RUN", "-n", "1"),
    "evaluate of a checkpoint": gsolve("evaluate", "RUN/epoch=1", "-n", "1"),
    "play": gsolve("play", "RUN", "--video", "episode.gif"),
    "score": gsolve("score", "RUN", "-n", "2"),
    "noise-scale": gsolve("noise-scale", "RUN"),
    "train --resume": gsolve("train", "--resume", "RUN", "-q"),
    "train --resume --detach": gsolve("train", "--resume", "RUN", "--detach"),
    "diagnose --probe": gsolve("diagnose", "RUN", "--probe"),
    "verify": gsolve("verify", "RUN", "-s", "gamma=0.9", "--seeds", "4", "-j", "1"),
    "optimize": gsolve("optimize", "RUN", "--budget", "20s", "-j", "1"),
    "run.policy": lambda trap, run: run.policy("last"),
    "api.evaluate": lambda trap, run: api.evaluate(run),
    "api.play": lambda trap, run: api.play(run, video="episode.gif"),
    "api.resume": lambda trap, run: api.resume(run),
    "api.score": lambda trap, run: api.score(run, episodes=2),
    "api.noise_scale": lambda trap, run: api.noise_scale(run),
    "api.probe": lambda trap, run: api.probe(run),
    "api.verify": lambda trap, run: api.verify(run, {"gamma": 0.9}, seeds=4, jobs=1),
    "api.optimize": lambda trap, run: api.optimize(run, budget="20s", jobs=1),
    "GET episode": episode(read_only=False),
    "mcp evaluate_run": tool("evaluate_run", checkpoint="RUN", episodes=1),
    "mcp score_run": tool("score_run", run_id="RUN", episodes=2),
    "mcp probe_run": tool("probe_run", run_id="RUN"),
    "mcp measure_noise_scale": tool("measure_noise_scale", run_id="RUN"),
    "mcp resume_training": tool("resume_training", run_id="RUN"),
    "mcp apply_and_verify": tool("apply_and_verify", run_id="RUN", overrides={"gamma": 0.9}, seeds=4),
    "mcp optimize_config": tool("optimize_config", run_id="RUN", budget="20s"),
}


def experiment(kind: str, **asked: Any) -> Way:
    """An experiment that goes on, of which experiment.json names the code."""

    def resume(trap: Trap) -> object:
        config = trap.run().config
        record = {"kind": kind, "status": "interrupted", "asked": {"config": config, **asked}}
        return main([kind, "--resume", trap.record("20260101-000000-x", "experiment.json", record), "-j", "1"])

    return resume


def solve_again(trap: Trap) -> object:
    asked = {"env_id": "trap:Env", "task": {"env_id": "trap:Env"}, "use_shipped": True, "episodes": 2, "seed": 1}
    record = {"kind": "solve", "status": "interrupted", "asked": asked}
    return main(["solve", "--resume", trap.record("20260101-000000-s", "experiment.json", record), "-j", "1"])


def seeds_again(trap: Trap) -> object:
    training = {"ref": "trap:Env:ppo", "overrides": [], "init_from": None, "stop_on": None}
    record = {"group": "20260101-000000-g", "seeds": [1, 2], "status": "interrupted", "training": training}
    return main(["train", "--resume", trap.record("20260101-000000-g", "group.json", record), "-q"])


def seeds_with_wrappers(trap: Trap) -> object:
    training = {"ref": "CartPole-v1:ppo", "overrides": ["env_wrappers=['trap:Wrapper']"]}
    record = {"group": "20260101-000000-w", "seeds": [1, 2], "status": "interrupted", "training": training}
    return main(["train", "--resume", trap.record("20260101-000000-w", "group.json", record), "-q"])


def sweep_again(trap: Trap) -> object:
    from tests.api.made_sweep import begin, close

    study = begin(trap.runs_dir, ref="trap:Env:ppo")
    close(study)
    return main(["sweep", "--resume", study.name, "--runs-dir", str(trap.runs_dir), "--trials", "1", "-j", "1"])


def suite(trap: Trap) -> object:
    (trap.here / "suite.yaml").write_text("- trap:Env:ppo\n")
    return main(["regress", "suite.yaml", "--update", "--baseline", "base.json", "--seeds", "1", "-j", "1"])


def started_over_mcp(trap: Trap) -> object:
    return tool("start_training", config_id="trap:Env:ppo")(trap, trap.run(seed=3))


def started_over_mcp_with_wrappers(trap: Trap) -> object:
    overrides = {"env_wrappers": ["trap:Wrapper"]}
    return tool("start_training", config_id="CartPole-v1:ppo", overrides=overrides)(trap, trap.run(seed=3))


def validated_over_mcp(trap: Trap) -> object:
    return tool("validate_ppo", function="trap:loss")(trap, trap.run(seed=3))


def configuration_over_mcp(trap: Trap) -> object:
    """One of the user's own files, which the person at the terminal may name; a client may not."""
    (trap.here / "config" / "environments").mkdir(parents=True)
    (trap.here / "config" / "environments" / "Mine.yaml").write_text("env_id: trap:Env\nppo: {}\n")
    return tool("start_training", config_id="Mine:ppo")(trap, trap.run(seed=3))


WAYS: dict[str, Way] = {
    **{name: (lambda trap, way=way: way(trap, trap.run())) for name, way in OF_A_RUN.items()},
    "env_wrappers": lambda trap: main(["evaluate", trap.run(env_wrappers=["trap:Wrapper"]).run_id, "-n", "1"]),
    "env_wrappers with arguments": lambda trap: main(
        ["evaluate", trap.run(env_wrappers=[{"trap:Wrapper": {"x": 1}}]).run_id, "-n", "1"]
    ),
    "module:Env-v0": lambda trap: main(["evaluate", trap.run(env_id="trap:Env-v0").run_id, "-n", "1"]),
    "engine: compiled": lambda trap: main(
        ["train", "--resume", trap.run(env_id="trap:Env", engine="compiled").run_id, "-q"]
    ),
    "vectorization: async": lambda trap: main(
        ["train", "--resume", trap.run(env_id="trap:Env", vectorization="async").run_id, "-q"]
    ),
    "verify --resume": experiment("verify", source="x", set={"gamma": 0.9}, seeds=4),
    "optimize --resume": experiment("optimize", source="x", seeds=4, objective="steps", run=None),
    "solve --resume": solve_again,
    "train --resume GROUP": seeds_again,
    "train --resume GROUP with wrappers": seeds_with_wrappers,
    "sweep --resume": sweep_again,
    "regress SUITE.yaml": suite,
    "mcp start_training": started_over_mcp,
    "mcp start_training with wrappers": started_over_mcp_with_wrappers,
    "mcp start_training of a user's file": configuration_over_mcp,
    "mcp validate_ppo": validated_over_mcp,
}


def enter(way: Way, trap: Trap) -> None:
    """However it ends: what counts is the mark."""
    try:
        way(trap)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("name", WAYS)
def test_a_file_that_names_code_runs_none(name: str, trap: Trap) -> None:
    enter(WAYS[name], trap)
    assert not trap.is_sprung


@pytest.mark.parametrize("name", WAYS)
def test_the_same_with_the_gate_open_does(name: str, trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith(("mcp", "GET")):
        monkeypatch.setenv(trust.ALLOWED, "trap")
    else:
        trust.allow_everything()
    enter(WAYS[name], trap)
    assert trap.is_sprung, "this way in is not one any more, or ends before it gets anywhere"


def test_a_server_that_only_reads_runs_none_even_if_allowed(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(trust.ALLOWED, "trap")
    episode(read_only=True)(trap, trap.run())
    assert not trap.is_sprung


# What reads only: no permission makes it import anything that the run names but to look at spaces.
READS = ["show RUN", "logs RUN", "runs", "status RUN", "report RUN", "checkpoints RUN", "inspect RUN", "diagnose RUN"]
READS += ["compare RUN RUN2", "config RUN", "insights trapped", "train CartPole-v1:ppo --init-from RUN/@last -q"]


@pytest.mark.parametrize("words", READS)
def test_what_only_reads_a_run_imports_nothing(words: str, trap: Trap) -> None:
    first, second = trap.run(), trap.run(env_id="trap:Env", seed=7)
    named = {"RUN": first.run_id, "RUN2": second.run_id, "RUN/@last": f"{first.run_id}/@last", "trapped": "CartPole-v1"}
    main([named.get(word, word) for word in words.split()])
    assert not trap.is_sprung


def test_a_callable_that_is_no_environment_is_not_called_even_with_trust(trap: Trap) -> None:
    """The import is allowed, the call is not."""
    run = trap.run(env_id="subprocess:Popen", env_kwargs={"args": ["touch", str(trap.mark)]})
    for allowed in (False, True):
        if allowed:
            trust.allow_everything()
        for name, way in OF_A_RUN.items():
            if not name.startswith(("mcp", "verify", "optimize", "api.verify", "api.optimize", "train")):
                enter(lambda trap, way=way: way(trap, run), trap)
                assert not trap.is_sprung, name


def test_a_run_of_another_library_imports_nothing(trap: Trap) -> None:
    (trap.here / "log.csv").write_text("step,reward\n" + "\n".join(f"{n},{n}" for n in range(100)) + "\n")
    settings = json.dumps({"env_id": "trap:Env", "algo": "ppo"})
    (trap.here / "config.json").write_text(settings)
    mapping = ["--map", "train/cnt/env_steps=step", "--map", "train/roll/ep_rew_mean=reward"]
    main(["import", "log.csv", "--env", "trap:Env", "--algo", "ppo", *mapping])
    main(["diagnose", "@last"])
    main(["diagnose", "@last", "--probe"])
    assert not trap.is_sprung
