"""Text of runs in the terminal: it steers nothing and hides nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gymnasium_solver.cli import output
from gymnasium_solver.cli.main import main
from gymnasium_solver.trust import clean, clean_rendered, escaped
from tests.made_runs import FAILING, write_run

CLEAR, TITLE, CSI, TURN, TAG = "\x1b[2J\x1b[1;1H", "\x1b]0;owned\x07", "\x9b2J", "\u202e", "\U000e0041"


def test_what_steers_a_terminal_or_hides_text_is_left_out() -> None:
    assert clean(f"a{CLEAR}b{TITLE}c{TURN}d{TAG}e\x08\r\x00") == "abcde"
    assert clean(f"a{CSI}b") == "a2Jb"  # what is left of it is harmless
    assert clean("Größe\t→ 25 %\nnächste Zeile 日本") == "Größe\t→ 25 %\nnächste Zeile 日本"
    assert clean("plain") == "plain"


def test_colours_of_our_own_stay() -> None:
    assert clean_rendered(f"\x1b[31merror:\x1b[0m {CLEAR}{TURN}x") == "\x1b[31merror:\x1b[0m x"


def test_json_says_the_same_in_escapes() -> None:
    value = {"text": f"a{CLEAR}{CSI}{TURN}{TAG}ü"}
    text = escaped(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value and not set(text) & {"\x1b", "\x9b", TURN, TAG} and "ü" in text


@pytest.mark.parametrize("verb", ["show", "logs", "runs", "status", "diagnose", "config"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_verbs_that_show_a_run(
    verb: str, form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = f"said{CLEAR}{TITLE}{CSI}{TURN}"
    run = write_run(tmp_path / "runs", FAILING, status="failed")
    config = json.loads((run.path / "config.json").read_text())
    (run.path / "config.json").write_text(json.dumps({**config, "env_kwargs": {"x": said}}))
    (run.path / "run.log").write_text(f"2026-01-01T00:00:00Z WARNING {said}\n")
    status = json.loads((run.path / "status.json").read_text())
    (run.path / "status.json").write_text(json.dumps({**status, "error": said}))
    run.path.rename(run.path.with_name(f"{run.run_id}{TURN}{CSI}"))
    main([verb, *([] if verb == "runs" else ["@last"]), *form])
    shown = "".join(capsys.readouterr())
    assert len(shown) > 20 and not set(shown) & {"\x1b", "\x9b", "\x07", TURN}


def test_a_message_or_an_error_with_text_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    output.message(f"it says {CLEAR}{TURN}x")
    output.error(f"it says {CLEAR}{TURN}x")
    assert capsys.readouterr().err == "it says x\nerror: it says x\n"
    print(f"{CLEAR}{TURN}")  # what the same would be without: the test sees it
    assert set(capsys.readouterr().out) & {"\x1b", TURN}
