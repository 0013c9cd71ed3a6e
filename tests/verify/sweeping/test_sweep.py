"""A search over configs: what may be searched, what Optuna is told, and what happens when it is cut short."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from gymnasium_solver.config.load import build_config, load_config, shipped, to_dict
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.runs.reader import list_runs
from gymnasium_solver.verify.sweeping import storage, studies
from gymnasium_solver.verify.sweeping.search import State
from gymnasium_solver.verify.sweeping.space import Parameter, applied, grid_points, read_space, repaired
from gymnasium_solver.verify.sweeping.studies import Aim
from gymnasium_solver.verify.sweeping.sweep import Plan, sweep
from gymnasium_solver.verify.sweeping.usual_space import usual_space
from gymnasium_solver.verify.trials import Notice, Trained, Training

pytestmark = pytest.mark.integration

optuna = pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def base() -> dict[str, Any]:
    return to_dict(load_config("CartPole-v1:ppo", ["max_env_steps=12288", "policy_lr=0.003"]))


def space_of(tmp_path: Path, text: str, base: dict[str, Any]) -> list[Parameter]:
    path = tmp_path / "space.yaml"
    path.write_text(text, encoding="utf-8")
    return read_space(path, base)


SPACE = """
policy_lr: {low: 1e-4, high: 1e-2, log: true}
n_epochs: {low: 2, high: 20, step: 2}
batch_size: [64, 128, 256]
hidden_dims: {choices: [[64, 64], [32]]}
gamma: {low: 0, high: 1}
ent_coef: {start: {low: 0.0, high: 0.05}, end: 0.001}
"""


def test_a_space_is_read_with_ranges_choices_and_schedules(tmp_path: Path, base: dict[str, Any]) -> None:
    space = {parameter.name: parameter for parameter in space_of(tmp_path, SPACE, base)}
    assert set(space) == {"policy_lr", "n_epochs", "batch_size", "hidden_dims", "gamma", "ent_coef.start"}
    assert space["policy_lr"].log and space["policy_lr"].low == 1e-4 and not space["policy_lr"].whole
    assert space["n_epochs"].whole and space["n_epochs"].step == 2
    assert not space["gamma"].whole  # 0 and 1 are its ends, not its values
    assert space["hidden_dims"].value("[32]") == [32]  # Optuna keeps it as text
    fields = applied(base, list(space.values()), {"ent_coef.start": 0.02, "policy_lr": 1e-3})
    assert fields["ent_coef"] == {"start": 0.02, "end": 0.001}
    assert [Parameter.from_dict(p.to_dict()) for p in space.values()] == list(space.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policy_rl: [1, 2]", ("space.yaml", "policy_rl", "did you mean 'policy_lr'")),
        ("policy_lr: {low: -1, high: 1}", ("space.yaml", "policy_lr", "-1")),
        ("policy_lr: {low: 0, high: 1, log: true}", ("policy_lr", "log range has no zero")),
        ("policy_lr: {low: 1}", ("policy_lr", "both are needed")),
        ("policy_lr: {low: 2, high: 1}", ("policy_lr", "swap")),
        ("policy_lr: {low: 1e-4, high: 1e-2, scale: log}", ("policy_lr", "scale")),
        ("policy_lr: {low: a, high: b}", ("policy_lr", "not a number")),
        ("policy_lr: 1e-3", ("policy_lr", "-s policy_lr")),
        ("activation: [tanh, thanh]", ("activation", "thanh")),
        ("batch_size: []", ("batch_size", "empty")),
        ("seed: [1, 2]", ("seed", "--seeds")),
        ("clip_range: [", ("space.yaml", "not valid YAML")),
        ("- policy_lr", ("space.yaml", "has no fields")),
    ],
)
def test_a_space_that_cannot_be_used_is_said_plainly(
    text: str, words: tuple[str, ...], tmp_path: Path, base: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as error:
        space_of(tmp_path, text, base)
    assert all(word in str(error.value) for word in words), error.value


def test_a_batch_that_does_not_divide_the_rollout_becomes_the_nearest_that_does(base: dict[str, Any]) -> None:
    fields = base | {"n_envs": 8, "n_steps": 24, "batch_size": 50}
    with pytest.raises(ConfigError):
        build_config(fields, "as it is")
    assert build_config(repaired(fields), "repaired").batch_size == 48  # type: ignore[attr-defined]
    replay = to_dict(load_config("CartPole-v1:dqn")) | {"n_envs": 4, "train_freq": 3, "update_to_data": 0.3}
    assert build_config(repaired(replay), "repaired").updates == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("ref", [f"{env}:{variant}" for env, variant, _ in shipped()])
def test_every_shipped_config_has_a_usual_space_that_contains_it(ref: str) -> None:
    fields = to_dict(load_config(ref))
    space = usual_space(fields)
    assert len(space) >= 3
    for parameter in space:
        parameter.distribution()
        for value in parameter.choices or (parameter.low, parameter.high):
            build_config(repaired(applied(fields, [parameter], {parameter.name: value})), ref)
    assert build_config(repaired(fields), ref) == build_config(fields, ref)


def test_a_grid_is_every_combination_and_needs_steps() -> None:
    points = grid_points([Parameter("a", choices=(1, [2])), Parameter("b", low=0, high=1, step=0.5)])
    assert len(points) == 6 and {"a": "[2]", "b": 0.5} in points
    with pytest.raises(ConfigError, match="b has no step"):
        grid_points([Parameter("b", low=0, high=1)])


def trained(steps: float | None, best: float = 100.0) -> Trained:
    return Trained("x", 1, "completed", best_reward=best, final_reward=best, steps_to_threshold=steps)


def test_a_missed_threshold_is_worse_than_any_reached_one_and_the_nearer_the_better() -> None:
    aim = Aim("steps", 475.0, 10_000)
    values = [aim.of(trained(9_999.0)), aim.of(trained(None, 470.0)), aim.of(trained(None, 20.0))]
    assert values == sorted(values, key=lambda value: value or math.inf) and len(set(values)) == 3
    assert aim.measured(trained(None)) == math.inf
    assert Aim("return", None, 10_000).of(trained(None, 33.0)) == 33.0


class Pretend:
    """Workers whose trainings take no time: the nearer policy_lr is to 3e-3 the sooner they reach 500, at 3e-2 they
    break, and with `interrupt_at` so many trainings Ctrl-C is pressed."""

    trained: ClassVar[list[Training]] = []
    interrupt_at = math.inf

    def __init__(self, count: int | None = None, *, runs_dir: Path | None = None, group: str | None = None) -> None:
        self.count, self._waiting, self._stopped = count or 2, deque[Training](), list[Training]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def free(self) -> int:
        return self.count - len(self._waiting)

    def submit(self, training: Training) -> None:
        self._waiting.append(training)

    def stop(self, training: Training) -> None:
        self._stopped.append(training)

    def notices(self, timeout: float | None = None) -> Iterator[Notice]:
        while self._waiting:
            training = self._waiting[0]
            if len(self.trained) >= self.interrupt_at:
                raise KeyboardInterrupt
            self.trained.append(training)
            trained = Trained(training.label, training.seed, "failed", error="it broke")
            if training.fields["policy_lr"] != 0.03:
                yield from self._curve(training)
                trained = self._outcome(training)
            self._waiting.popleft()
            yield Notice(training, "done", {}, trained)

    def results(self, trainings: Sequence[Training]) -> Iterator[Trained]:
        for training in trainings:
            self.submit(training)
        return (notice.trained for notice in self.notices() if notice.trained)

    def _reward(self, training: Training, share: float) -> float:
        distance = abs(math.log10(training.fields["policy_lr"] / 3e-3))
        luck = 0.01 * (training.seed % 7)
        return 500 * min(1.0, share / (0.2 + luck + 0.5 * distance))

    def _curve(self, training: Training) -> Iterator[Notice]:
        for point in range(1, 21):
            if training in self._stopped:
                return
            reward = self._reward(training, point / 20)
            steps = point / 20 * training.fields["max_env_steps"]
            yield Notice(training, "evaluated", {"steps": steps, "reward": reward})
            if reward >= 475:
                return

    def _outcome(self, training: Training) -> Trained:
        budget = training.fields["max_env_steps"]
        steps = next((x / 20 * budget for x in range(1, 21) if self._reward(training, x / 20) >= 475), None)
        best = self._reward(training, 1.0)
        status = "interrupted" if training in self._stopped else "completed"
        return Trained(
            training.label, training.seed, status, final_reward=best, best_reward=best, steps_to_threshold=steps
        )  # fmt: skip


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> type[Pretend]:
    monkeypatch.setattr("gymnasium_solver.verify.sweeping.search.Workers", Pretend)
    monkeypatch.setattr(Pretend, "trained", [])
    monkeypatch.setattr(Pretend, "interrupt_at", math.inf)
    return Pretend


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    path = tmp_path / "narrow.yaml"
    path.write_text("policy_lr: {low: 1e-5, high: 1e-2, log: true}\nn_epochs: [4, 10]\n", encoding="utf-8")
    return path


def plan(narrow: Path, tmp_path: Path, **changes: Any) -> Plan:
    usual: dict[str, Any] = {"overrides": ("policy_lr=5e-4",), "space": narrow, "trials": 20, "seeds": 1, "jobs": 1}
    return Plan("CartPole-v1:ppo", **(usual | {"name": "search", "runs_dir": tmp_path / "runs"} | changes))


def test_a_sweep_finds_what_is_better_and_proves_it_on_fresh_seeds(
    narrow: Path, tmp_path: Path, pretend: type[Pretend]
) -> None:
    seen: list[State] = []
    document = sweep(plan(narrow, tmp_path, seeds=2), seen.append)
    assert sum(document["counts"].values()) == 20 and document["counts"]["pruned"] > 0
    assert not document["trials"][0]["set"]  # the config as it is comes first
    best = document["best"]
    assert 1e-3 < best["set"]["policy_lr"] < 1e-2 and best["value"] < document["base"]["value"]
    confirmation = document["confirmation"]
    assert confirmation["verdict"] == "better" and len(confirmation["base"]) == len(confirmation["best"]) == 5
    by = {training.seed for training in pretend.trained if training.label.startswith("trial")}
    fresh = {training.seed for training in pretend.trained if not training.label.startswith("trial")}
    assert by == {42, 43} and not by & fresh
    assert next(iter(document["importance"])) == "policy_lr"

    directory = tmp_path / "runs" / "search"
    assert "The winner is better" in (directory / "report.md").read_text()
    assert all((directory / f"{x}.png").read_bytes()[1:4] == b"PNG" for x in ("history", "importance", "parameters"))
    assert best["command"].startswith("gsolve train CartPole-v1:ppo -s policy_lr=0.0")
    (tmp_path / "CartPole-v1.yaml").write_text((directory / "best.yaml").read_text(), encoding="utf-8")
    wanted = to_dict(load_config("CartPole-v1:ppo")) | best["set"]
    assert to_dict(load_config("CartPole-v1:ppo_sweep", directory=tmp_path)) == wanted
    assert any(state.line.startswith("trial 0: complete") for state in seen)


@pytest.mark.parametrize(
    ("verdict", "file", "words"),
    [
        ("better", "best.yaml", "## Use it"),
        ("no difference shown", "candidate.yaml", "CartPole-v1:ppo stays"),
        ("too few seeds", "candidate.yaml", "not shown to be better"),
        ("worse", None, "Keep CartPole-v1:ppo as it is."),
        (None, "candidate.yaml", "it was not checked on fresh seeds"),
    ],
)
def test_only_a_winner_that_fresh_seeds_confirm_is_to_be_used(
    narrow: Path,
    tmp_path: Path,
    pretend: type[Pretend],
    monkeypatch: pytest.MonkeyPatch,
    verdict: str | None,
    file: str | None,
    words: str,
) -> None:
    directory = tmp_path / "runs" / "search"
    sweep(plan(narrow, tmp_path, trials=4))
    (directory / "best.yaml").write_text("of an earlier search", encoding="utf-8")
    known = {"verdict": verdict, "sentence": "On fresh seeds this is so."}
    monkeypatch.setattr("gymnasium_solver.verify.sweeping.report.judged", lambda *_: known)
    document = sweep(plan(narrow, tmp_path, trials=5, **({"confirm_seeds": 0} if verdict is None else {})))
    text = (directory / "report.md").read_text()
    assert document["best"]["set"] and document["variant_file"] == file and words in text
    assert ("## Use it" in text) == (verdict == "better")
    assert {path.name for path in directory.glob("*.yaml")} == ({file} if file else set())


def test_it_goes_on_where_it_was_and_with_nothing_else(narrow: Path, tmp_path: Path, pretend: type[Pretend]) -> None:
    sweep(plan(narrow, tmp_path, trials=3, confirm_seeds=0))
    document = sweep(Plan(None, name="search", trials=5, confirm_seeds=0, runs_dir=tmp_path / "runs"))
    assert sum(document["counts"].values()) == 5 and document["ref"] == "CartPole-v1:ppo"
    assert sum(sweep(plan(narrow, tmp_path, trials=6, confirm_seeds=0))["counts"].values()) == 6
    with pytest.raises(ConfigError, match=r"different settings \(seeds\)"):
        sweep(plan(narrow, tmp_path, seeds=2))


def test_interrupted_it_saves_and_tries_again_what_it_was_at(
    narrow: Path, tmp_path: Path, pretend: type[Pretend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pretend, "interrupt_at", 2)
    document = sweep(plan(narrow, tmp_path, trials=4))
    assert document["interrupted"] and document["counts"] == {"complete": 2, "interrupted": 1}
    assert (tmp_path / "runs" / "search" / "report.md").is_file()
    monkeypatch.setattr(Pretend, "interrupt_at", math.inf)
    again = sweep(plan(narrow, tmp_path, trials=4, confirm_seeds=0))
    assert again["counts"] == {"complete": 4, "interrupted": 1} and not again["interrupted"]
    assert again["trials"][3]["params"] == again["trials"][2]["params"]


def test_what_breaks_or_does_not_fit_does_not_end_a_sweep(tmp_path: Path, pretend: type[Pretend]) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("n_steps: [16, 65536]\npolicy_lr: [3e-3, 3e-2]\n", encoding="utf-8")
    document = sweep(plan(path, tmp_path, sampler="grid", trials=None, confirm_seeds=0))
    assert document["counts"] == {"complete": 1, "failed": 1, "invalid": 2}
    assert {row["error"] for row in document["trials"] if row["outcome"] == "failed"} == {"it broke"}
    assert all("max_env_steps" in row["error"] for row in document["trials"] if row["outcome"] == "invalid")


def test_a_sweep_in_which_nothing_can_be_trained_says_why(tmp_path: Path, pretend: type[Pretend]) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("n_epochs: [1, 2, 3, 4, 5]\n", encoding="utf-8")
    with pytest.raises(SolverError, match="no trial could be trained: it broke"):
        sweep(plan(path, tmp_path, overrides=("policy_lr=0.03",)))


@pytest.mark.parametrize("sampler", ["random", "cmaes", "qmc"])
def test_other_samplers(sampler: str, narrow: Path, tmp_path: Path, pretend: type[Pretend]) -> None:
    document = sweep(plan(narrow, tmp_path, sampler=sampler, pruner="hyperband", trials=8, confirm_seeds=0))
    assert sum(document["counts"].values()) == 8 and document["best"]


def test_out_of_time_it_stops_with_what_it_has(narrow: Path, tmp_path: Path, pretend: type[Pretend]) -> None:
    document = sweep(plan(narrow, tmp_path, trials=None, budget=1.0, confirm_seeds=0))
    assert document["counts"]["complete"] >= 1


def test_what_cannot_be_searched_is_said_before_anything_is_written(narrow: Path, tmp_path: Path) -> None:
    for changes, words in (
        ({"sampler": "simplex"}, "--sampler 'simplex' is not one of tpe"),
        ({"pruner": "axe"}, "--pruner 'axe' is not one of median"),
        ({"objective": "speed"}, "--objective 'speed' is not one of steps"),
        ({"name": "a/b"}, "leave out slashes"),
        ({"storage": "nosuch://place"}, "nosuch://place cannot be used"),
        ({"space": tmp_path / "missing.yaml"}, "missing.yaml cannot be read"),
    ):
        with pytest.raises(ConfigError, match=words):
            sweep(plan(narrow, tmp_path, **changes))
    with pytest.raises(NotFoundError, match="no sweep 'nothing'"):
        sweep(Plan(None, name="nothing", runs_dir=tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_a_password_is_not_shown() -> None:
    assert storage.without_password("postgresql://me:secret@host/db") == "postgresql://me:…@host/db"
    assert storage.without_password("sqlite:///a.db") == "sqlite:///a.db"


FEW = ("max_env_steps=8192", "eval_freq_epochs=1", "eval_episodes=2", "reward_threshold=60")


@pytest.mark.slow
def test_real_trainings_are_runs_of_the_sweep(narrow: Path, tmp_path: Path) -> None:
    document = sweep(plan(narrow, tmp_path, overrides=FEW, trials=2, confirm_seeds=0, jobs=2))
    assert sum(document["counts"].values()) == 2
    runs = list_runs(tmp_path / "runs")
    assert len(runs) == 2 and {run.status["group"] for run in runs} == {"search"}
    assert {run.run_id for run in runs} == {name for row in document["trials"] for name in row["runs"]}


@pytest.mark.slow
def test_a_killed_sweep_tries_again_what_it_was_at(narrow: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gymnasium_solver.verify.sweeping.sweep import Plan, sweep; "
        f"sweep(Plan('CartPole-v1:ppo', ('max_env_steps=3e6', 'stop_when_solved=false'), Path({str(narrow)!r}), "
        f"trials=2, objective='return', name='killed', jobs=1, runs_dir=Path({str(tmp_path / 'runs')!r})))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 60
    while not list_runs(tmp_path / "runs"):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    study = studies.resume_study("killed", None, tmp_path / "runs", "tpe", "median")
    assert [trial.state.name for trial in study.trials] == ["RUNNING"]  # its process lives: not ours to touch
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    study = studies.resume_study("killed", None, tmp_path / "runs", "tpe", "median")
    assert [trial.state.name for trial in study.trials] == ["FAIL", "WAITING"]
    assert studies.finished(study.trials) == 0
    first = study.trials[0].params
    assert study.optuna.ask({p.name: p.distribution() for p in study.space}).params == first
    study = studies.resume_study("killed", None, tmp_path / "runs", "tpe", "median")
    assert len(study.trials) == 2  # tried again once, not twice
