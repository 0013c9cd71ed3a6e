"""The edge: exit codes, one-line errors, streams, speed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.cli import output
from gymnasium_solver.errors import DivergedError, MissingExtraError, NotFoundError, SolverError
from tests.made_runs import HEALTHY, write_run

VERBS = [
    "train",
    "runs",
    "show",
    "logs",
    "status",
    "stop",
    "report",
    "checkpoints",
    "evaluate",
    "play",
    "config",
    "envs",
]


@pytest.mark.integration
def test_help_imports_nothing_heavy() -> None:
    """Which is what keeps it quick."""
    code = (
        "import sys; from gymnasium_solver.cli.main import main; main(['--help']); "
        "print([m for m in ('jax', 'numpy', 'rich', 'pydantic', 'gymnasium', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.integration
def test_garbage_is_collected_once_the_imports_are_done() -> None:
    """A cycle holds an array: were it not found, memory would grow with every step of an environment that makes one."""
    code = (
        "import gc, weakref; from gymnasium_solver.__main__ import IMPORTED, collect_after_imports\n"
        "class Cycle: pass\n"
        "usual = gc.get_threshold(); collect_after_imports(); kept = [[] for _ in range(IMPORTED)]\n"
        "cycle = Cycle(); cycle.itself = cycle; gone = weakref.ref(cycle); del cycle; more = [[] for _ in range(999)]\n"
        "print(gc.get_threshold() == usual, gc.get_freeze_count() > IMPORTED // 2, gone() is None, gc.callbacks)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True True True []"


@pytest.mark.integration
@pytest.mark.parametrize("before", [0, 300_000])
def test_an_environment_is_finalised_at_exit(before: int) -> None:
    """Part of a cycle as it may be, and what it says then may be the end of a log."""
    code = (
        "import sys; from gymnasium_solver.__main__ import collect_after_imports\n"
        "class Environment:\n"
        "    def __init__(self): self.unwrapped = self\n"
        "    def __del__(self): print('the end')\n"
        f"collect_after_imports(); kept = [[] for _ in range({before})]; Environment()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "the end\n"


@pytest.mark.integration
def test_a_verb_does_not_wait_for_the_others() -> None:
    code = (
        "import sys; from gymnasium_solver.cli.main import main; main(['config', '--help']); "
        "print([m for m in ('training', 'serving', 'insights') if f'gymnasium_solver.cli.{m}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_lists_verbs_and_examples(gsolve: Callable[..., Any]) -> None:
    result = gsolve("--help")
    assert result.code == 0
    assert all(f"\n  {verb} " in result.out for verb in VERBS)
    assert "gsolve train CartPole-v1:ppo" in result.out
    assert result.err == ""


def test_alone_it_shows_the_way_in(gsolve: Callable[..., Any]) -> None:
    code, out, err = gsolve()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert [line.split("  ")[1] for line in lines if line.startswith("  gsolve ")] == [
        "gsolve train CartPole-v1:ppo",
        "gsolve diagnose @last",
        "gsolve optimize @last",
    ]


def test_every_verb_has_its_place_in_the_help_and_no_line_is_too_long(gsolve: Callable[..., Any]) -> None:
    from gymnasium_solver.cli.front_page import GROUPS
    from gymnasium_solver.cli.main import VERBS as ALL

    verbs = [verb for group in GROUPS.values() for verb in group]
    assert sorted(verbs) == sorted(ALL)
    for arguments in ([], *([verb] for verb in verbs)):
        lines = gsolve(*arguments, "--help").out.splitlines()
        assert [line for line in lines if len(line) > 80] == []
        assert arguments or not any(line.endswith("...") for line in lines[1:])  # cut short


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_help_text(gsolve: Callable[..., Any], verb: str) -> None:
    import typer.main

    from gymnasium_solver.cli.main import command_line

    assert gsolve(verb, "--help").code == 0
    command = typer.main.get_command(command_line([verb])).commands[verb]  # type: ignore[attr-defined]
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        assert parameter.hidden or (text and text.endswith(".")), f"{verb}: {parameter.name}"


def test_version(gsolve: Callable[..., Any]) -> None:
    assert gsolve("--version") == (0, "gsolve 0.1.0\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "Did you mean 'train'?"),
        (["train", "--bogus"], "No such option"),
        (["train", "CartPole-v1:ppo", "--seeds", "zero"], "--seeds"),
        (["train", "CartPole-v1:ppo", "--seeds", "0"], "--seeds"),
        (["train"], "ENV:VARIANT"),
        (["train", "CartPole-v1:ppo", "--resume", "@last"], "--resume"),
        (["train", "CartPole-v1:ppo", "--set", "policy_lr"], "FIELD=VALUE"),
        (["train", "CartPole-v1:ppo", "--set", "polcy_lr=1"], "policy_lr"),
        (["train", "CartPole-v1:ppo", "--set", "batch_size=100"], "batch_size"),
        (["config", "CartPole-v1"], "ENV:VARIANT"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(gsolve: Callable[..., Any], arguments: list[str], words: str) -> None:
    result = gsolve(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert words in result.err


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (SolverError("something\nin two lines"), 1),
        (MissingExtraError("play", "play"), 2),
        (NotFoundError("no run"), 3),
        (DivergedError("NaN"), 4),
        (KeyboardInterrupt(), 130),
        (RuntimeError("a bug"), 1),
    ],
)
def test_failures_have_their_exit_code(
    gsolve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int
) -> None:
    import gymnasium_solver.config.load as load

    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(load, "listing", fail)
    result = gsolve("envs")
    assert result.code == code
    assert result.out == ""
    assert result.err.count("\n") <= 1
    assert "Traceback" not in result.err


def test_debug_shows_the_traceback(gsolve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium_solver.config.load as load

    monkeypatch.setenv("GSOLVE_DEBUG", "1")
    monkeypatch.setattr(load, "listing", lambda *_: 1 / 0)
    result = gsolve("envs")
    assert result.code == 1
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("error: ZeroDivisionError")


def test_config_as_yaml_and_json(gsolve: Callable[..., Any]) -> None:
    import yaml

    text = gsolve("config", "CartPole-v1:ppo", "--set", "gamma=0.9")
    document = gsolve("config", "CartPole-v1:ppo", "--set", "gamma=0.9", "--json")
    assert text.code == document.code == 0
    assert yaml.safe_load(text.out) == json.loads(document.out)
    assert json.loads(document.out)["gamma"] == 0.9


def test_config_of_a_run(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs", HEALTHY, gamma=0.9)
    assert json.loads(gsolve("config", run.run_id, "--json").out) == run.config
    assert json.loads(gsolve("config", "@last", "--set", "gamma=0.8", "--json").out) == {**run.config, "gamma": 0.8}
    assert "is a run" in gsolve("config", "@last", "--describe").err
    assert "gama" in gsolve("config", "@last", "--set", "gama=0.8").err


def test_a_saved_config_is_a_configuration(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    """As `gsolve config … > FILE` does it: the shell has made the file before."""
    file = tmp_path / "config" / "environments" / "CartPole-v1.yaml"
    file.parent.mkdir(parents=True)
    for options in ((), ("--describe",)):
        file.write_text("")
        printed = gsolve("config", "CartPole-v1:ppo", "--set", "gamma=0.9", *options)
        assert printed.code == 0
        file.write_text(printed.out)
        assert json.loads(gsolve("config", "CartPole-v1:ppo", "--json").out)["gamma"] == 0.9


def test_envs_names_a_broken_file_and_lists_the_others(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "config" / "environments").mkdir(parents=True)
    (tmp_path / "config" / "environments" / "Broken-v0.yaml").write_text("ppo: [\n")
    result = gsolve("envs", "cartpole")
    assert result.code == 0
    assert "CartPole-v1" in result.out
    assert result.err.startswith("warning: config/environments/Broken-v0.yaml line 2: not valid YAML")


@pytest.mark.parametrize("columns", [12, 40, 200])
def test_config_described(columns: int, gsolve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml
    from rich.console import Console

    from gymnasium_solver.cli import output

    monkeypatch.setattr(output, "console", lambda _: Console(width=columns))
    words = ("config", "LunarLander-v3:dqn", "--set", "gamma=0.9")
    plain, text, document = (
        gsolve(*words, "--json"),
        gsolve(*words, "--describe"),
        gsolve(*words, "--describe", "--json"),
    )
    assert yaml.safe_load(text.out) == json.loads(plain.out), "comments around the same YAML"
    comments = [line for line in text.out.splitlines() if line.startswith("#")]
    longest = len("# (LunarLander-v3.yaml);")  # words stay whole
    assert max(map(len, comments)) <= min(100, max(longest, columns))
    said = " ".join(line.removeprefix("# ") for line in comments)
    assert "discount (--set)" in said and "discount (--set); fixed" not in said
    assert "transitions kept for replay (LunarLander-v3.yaml, dqn); fixed once training has begun" in said
    assert "all randomness of a run follows from it (default)" in said
    assert "follows from other fields" in said
    found = json.loads(document.out)
    gamma = {"value": 0.9, "source": "override", "file": None, "description": "discount", "fixed": False}
    assert found["gamma"] == gamma
    assert found["buffer_size"]["fixed"] and found["buffer_size"]["file"].endswith("LunarLander-v3.yaml")
    assert {name: field["value"] for name, field in found.items()} == json.loads(plain.out)


def test_envs(gsolve: Callable[..., Any]) -> None:
    assert "CartPole-v1" in gsolve("envs").out
    assert {row["env_id"] for row in json.loads(gsolve("envs", "cartpole", "--json").out)} == {"CartPole-v1"}
    assert json.loads(gsolve("envs", "nothing-like-it", "--json").out) == []
    assert gsolve("envs", "nothing-like-it").code == 3


def test_output_without_a_terminal_has_no_escape_codes(process: Callable[..., Any]) -> None:
    for environment in ({}, {"NO_COLOR": "1"}):
        for arguments in (["envs"], ["--help"], ["show", "nothing"]):
            result = process(*arguments, **environment)
            assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.integration
def test_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m gymnasium_solver config CartPole-v1:ppo | true; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.stdout == "0\n"
    assert result.stderr == ""


def test_json_holds_what_json_cannot() -> None:
    import numpy as np

    value = {"a": np.float32(1.5), "b": np.array([1, 2]), "c": float("nan"), "d": (1, float("inf")), "e": True, 3: None}
    assert output.plain(value) == {"a": 1.5, "b": [1, 2], "c": None, "d": [1, None], "e": True, "3": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (1234567, "1,234,567"),
        (0.000123456, "0.0001235"),
        (True, "True"),
        (500.0, "500"),
    ],
)
def test_numbers_are_short(value: Any, text: str) -> None:
    assert output.number(value) == text


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_names_in_the_first_column_stay_whole(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    name = "20260101-120000-MountainCarContinuous-v0-ppo-s42-1a2b"
    rows = [(name, "interrupted", "1,000,000", "-99.5", "-100", "90", "1 h 01 min")]
    output.emit_table(("RUN", "STATUS", "STEPS", "BEST", "LAST", "GOAL", "TIME"), rows, right=("STEPS",))
    _, line = capsys.readouterr().out.splitlines()
    assert line.split()[0] == name
    assert len(line) <= max(int(columns), len(name))
    assert ("1 h 01 min" in line) == (columns == "200")


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_long_column_is_cut_before_others_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch, 50)
    output.emit_table(("NAME", "WORDS", "COUNT"), [("a-name", "word " * 20, "7")], right=("COUNT",))
    _, line = capsys.readouterr().out.splitlines()
    assert line.startswith("a-name  word word") and line.endswith("…      7") and len(line) <= 50


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_facts_keep_their_names_and_what_is_copied_keeps_its_line(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch, columns)
    path, words = f"/somewhere/{'deep/' * 20}run", " ".join(f"epoch={epoch}" for epoch in range(60))
    command = f"gsolve train CartPole-v1:ppo {'--set policy_lr=0.001 ' * 5}--seed 1"
    output.emit_facts([("directory", path), ("checkpoints", words), ("next", command)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"directory    {path}"
    assert lines[1].startswith("checkpoints  epoch=0 ") and all(line.startswith(" " * 13) for line in lines[2:-1])
    assert " ".join(line[13:] for line in lines[1:-1]) == words and all(len(line) <= columns for line in lines[1:-1])
    assert lines[-1] == f"next         {command}"


def test_sentences_are_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "Nobody likes to read sentences that a terminal breaks in the middle of words. " * 3
    output.emit_prose(sentence)
    assert capsys.readouterr().out == f"{sentence}\n"
    on_a_terminal(monkeypatch, 40)
    output.emit_prose(sentence)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40 and " ".join(lines) == sentence.strip()
