"""Configuration files that anyone may have written: refused in a sentence, quickly, and no others with them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from gymnasium_solver.cli.main import main
from gymnasium_solver.config import load
from gymnasium_solver.config.files import read_file, read_yaml
from gymnasium_solver.config.load import listing, parse_overrides
from gymnasium_solver.errors import ConfigError

DOUBLING = "a0: &a0 [0]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
MERGING = "a0: &a0 {x: 0}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 60))
ODD = {
    "doubling aliases": (DOUBLING, "more than 20,000 values"),
    "doubling merges": (MERGING, "more than 20,000 values"),
    "inside itself": ("env_id: &a [*a]", "inside of what it stands for"),
    "nested": ("env_id: " + "[" * 5000, "nested more than 100 deep"),
    "many values": ("env_id: [" + "0," * 30_000 + "]", "more than 20,000 values"),
    "large": ("# " + "x" * (2 << 20), "larger than"),
    "long number": ("env_id: " + "1:" * 20_000 + "1", "a number too long"),
    "empty int": ("env_id: !!int ''", "not valid YAML"),
    "no bool": ("env_id: !!bool maybe", "not valid YAML"),
    "no time": ("env_id: !!timestamp now", "not valid YAML"),
    "endless float": ("env_id: !!float " + "9:" * 2000 + "0.0", "not valid YAML"),
    "an object": ("env_id: !!python/object/apply:os.getcwd []", "not valid YAML"),
    "a number as a key": ("env_id: A-v0\n1: {algo_id: ppo}", "1 is no name of a field"),
    "a list as env_id": ("env_id: [A-v0]\nppo: {}", "is no id of an environment"),
    "no text": ("\x00", "not valid YAML"),
    "a list": ("- 1", "not a mapping"),
}


@pytest.mark.parametrize("name", ODD)
def test_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    text, why = ODD[name]
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    tracemalloc.start()
    with pytest.raises(ConfigError, match=why):
        read_file(path)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_aliases_within_reason_are_read(tmp_path: Path) -> None:
    path = tmp_path / "fine.yaml"
    path.write_text("env_id: A-v0\nppo: &ppo {n_envs: 4}\nslow: {<<: *ppo, algo_id: ppo, n_envs: 2}\n")
    assert read_yaml(path)["slow"] == {"n_envs": 2, "algo_id": "ppo"}


@pytest.mark.parametrize("value", ["&a [*a]", "!!int ''", "[" * 500, "1:" * 9000 + "1"])
def test_odd_overrides(value: str) -> None:
    with pytest.raises(ConfigError, match="is not a YAML value"):
        list(parse_overrides([f"policy_lr={value}"]))


@pytest.mark.parametrize("whose", ["USER", "SHIPPED"])
@pytest.mark.parametrize("name", ODD)
def test_the_other_files_are_listed(
    name: str, whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load, whose, tmp_path)
    (tmp_path / "odd.yaml").write_text(ODD[name][0])
    (tmp_path / "sound.yaml").write_text("env_id: Sound-v0\nppo: {}\n")
    found, problems = listing("Sound")
    assert found == [("Sound-v0", "ppo", tmp_path / "sound.yaml")]
    assert list(problems) == [tmp_path / "odd.yaml"]
    assert main(["envs", "Sound"]) == 0
    out, err = capsys.readouterr()
    assert f"warning: {tmp_path / 'odd.yaml'}" in err
    assert "Sound-v0" in out
