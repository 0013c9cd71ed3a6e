"""Files that are empty, cut off, rubbish or hostile: a partial import or one sentence. Nothing is executed."""

from __future__ import annotations

import base64
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.foreign import import_run, read_foreign, settings_files
from gymnasium_solver.runs.layout import read_json
from tests.runs.foreign.conftest import SB3_COLUMNS, SB3_DATA, write_zip


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.mark,))


def test_a_bomb_goes_off_where_pickles_are_loaded(tmp_path: Path) -> None:
    """The control: without it the next test would prove nothing."""
    pickle.loads(pickle.dumps(Bomb(tmp_path / "mark")))
    assert (tmp_path / "mark").exists()


def test_nothing_in_a_file_is_executed(sb3: Path, runs_dir: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    bomb = pickle.dumps(Bomb(mark))
    encoded = base64.b64encode(bomb).decode()
    data = {**SB3_DATA, "learning_rate": {":type:": "x", ":serialized:": encoded}, "gamma": 0.5}
    write_zip(sb3 / "model.zip", data, **{"policy.pth": bomb, "pytorch_variables.pth": bomb})
    (sb3 / "params.pkl").write_bytes(bomb)
    (sb3 / "config.yml").write_text(f"a: !!python/object/apply:pathlib.Path.touch [{mark}]\nn_epochs: 7\n")
    (sb3 / "args.yml").write_text(f"!!python/object/apply:os.system ['touch {mark}']\n")
    run = import_run(sb3, runs_dir)
    assert not mark.exists()
    assert run.config["gamma"] == 0.5
    source = (run.path / "source.json").read_text()
    assert encoded[:40] not in source


def test_a_zip_bomb_is_not_unpacked(sb3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_files, "LARGEST_JSON", 1 << 16)
    write_zip(sb3 / "model.zip", b'{"gamma": 0.5, "x": "' + b"0" * (1 << 24) + b'"}')
    foreign = read_foreign(sb3)
    assert "gamma" not in foreign.config
    assert any("larger than" in note for note in foreign.notes)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 rubbish", b"no zip"])
def test_a_damaged_model_beside_good_logs(sb3: Path, content: bytes) -> None:
    (sb3 / "model.zip").write_bytes(content)
    foreign = read_foreign(sb3)
    assert foreign.columns["train/roll/ep_rew_mean"].values.size == 8


def test_a_damaged_model_alone(tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_bytes(b"no zip")
    with pytest.raises(ConfigError, match="damaged"):
        read_foreign(tmp_path / "model.zip")


def test_a_zip_that_is_no_model(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(ConfigError, match="no model"):
        read_foreign(tmp_path / "other.zip")


def test_yaml_that_doubles_with_every_line(tmp_path: Path, sb3: Path) -> None:
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{i}: &a{i} {{l: *a{i - 1}, r: *a{i - 1}}}" for i in range(1, 30)]
    (sb3 / "config.yml").write_text("\n".join(lines))
    assert any("config.yml" in note for note in read_foreign(sb3).notes)


def test_a_large_settings_file_is_left_alone(sb3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_files, "LARGEST_YAML", 100)
    (sb3 / "config.yml").write_text("gamma: 0.1\n" + "#" * 200)
    assert read_foreign(sb3).config["gamma"] == 0.99


def test_a_path_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="there is no file or directory 'nowhere'") as caught:
        read_foreign("nowhere")
    assert caught.value.exit_code == 2


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing that can be imported"):
        read_foreign(tmp_path)


@pytest.mark.parametrize("name", ["progress.csv", "result.json", "monitor.csv", "log.csv", "log.jsonl", "x.tfevents.1"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\x00\x01\x02\xff" * 100, b"\x89PNG\r\n\x1a\n" + b"\xff" * 500])
def test_rubbish_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_foreign(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_header_without_rows(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text(SB3_COLUMNS + "\n")
    with pytest.raises(ConfigError, match="holds nothing that can be read"):
        read_foreign(tmp_path)


def test_a_csv_cut_off_in_its_last_line(sb3: Path) -> None:
    whole = (sb3 / "progress.csv").read_text()
    (sb3 / "progress.csv").write_text(whole[: whole.rindex(",")])
    foreign = read_foreign(sb3)
    assert foreign.columns["train/roll/ep_rew_mean"].values.size == 7


def test_a_csv_with_lines_that_are_none(sb3: Path) -> None:
    lines = (sb3 / "progress.csv").read_text().splitlines()
    lines.insert(3, "Traceback (most recent call last):")
    lines.insert(5, "1,2,3")
    (sb3 / "progress.csv").write_text("\n".join(lines) + "\n")
    foreign = read_foreign(sb3)
    assert foreign.columns["train/roll/ep_rew_mean"].values.size == 8
    assert "progress.csv: 2 lines that are cut off or damaged were left out" in foreign.notes


def test_json_lines_cut_off(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "reward": 2}\n{"step": 2, "reward": 3}\n{"step": 3, "rew')
    foreign = read_foreign(tmp_path / "log.jsonl")
    assert foreign.columns["train/roll/ep_rew_mean"].values.tolist() == [2.0, 3.0]
    assert any("cut off" in note for note in foreign.notes)


def test_json_nested_without_end(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(ConfigError):
        read_foreign(tmp_path / "log.json")


def test_a_column_of_nan_is_kept_where_it_is_evidence(tmp_path: Path, runs_dir: Path) -> None:
    rows = "".join(f"{step},nan,nan,\n" for step in (1, 2, 3))
    (tmp_path / "progress.csv").write_text("time/total_timesteps,train/approx_kl,rollout/ep_rew_mean,empty\n" + rows)
    run = import_run(tmp_path, runs_dir)
    assert np.isnan(run.metrics["train/metrics/kl_divergence"]).all()
    assert run.metrics.recorded("train/metrics/kl_divergence").all()
    assert "train/roll/ep_rew_mean" not in run.metrics  # no episode ended: absent, not wrong
    assert "foreign/empty" not in run.metrics


def test_names_that_would_break_the_table(tmp_path: Path, runs_dir: Path) -> None:
    rows = [{"step": 1, 'a,"b\nc': 5.0, "ok": 1.0}, {"step": 2, 'a,"b\nc': 6.0, "ok": 2.0}]
    (tmp_path / "log.json").write_text(json.dumps(rows))
    run = import_run(tmp_path / "log.json", runs_dir)
    assert run.metrics["foreign/a__b_c"].tolist() == [5.0, 6.0]
    assert run.metrics.skipped_lines == 0


def test_numbers_beyond_float(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "log.json").write_text('[{"step": 1, "reward": 1' + "0" * 400 + '}, {"step": 2, "reward": 5}]')
    run = import_run(tmp_path / "log.json", runs_dir)
    assert run.metrics.last("train/roll/ep_rew_mean") == 5.0


def test_columns_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('step,reward,reward,,host\n1,2,3,0,"a"\n2,4,5,1,"b"\n')
    foreign = read_foreign(tmp_path / "log.csv")
    assert foreign.columns["train/roll/ep_rew_mean"].values.tolist() == [2.0, 4.0]
    assert foreign.unmapped == []


def test_a_file_that_may_not_be_read(sb3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "progress.csv")

    monkeypatch.setattr("gymnasium_solver.runs.foreign.logs.read_csv", refuse)
    with pytest.raises(ConfigError, match=r"progress.csv cannot be read: Permission denied"):
        read_foreign(sb3)


def test_evaluations_that_are_pickled_stay_shut(sb3: Path, tmp_path: Path) -> None:
    np.savez(
        sb3 / "evaluations.npz", timesteps=[1], results=np.array([Bomb(tmp_path / "mark")], object), ep_lengths=[1]
    )
    assert any("evaluations.npz" in note for note in read_foreign(sb3).notes)
    assert not (tmp_path / "mark").exists()


def test_several_runs_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n1,2\n")
    with pytest.raises(ConfigError, match=r"holds 2 runs; import them one by one: .*one.*two"):
        read_foreign(tmp_path)


def test_a_run_of_ours_is_not_imported(sb3: Path, runs_dir: Path) -> None:
    run = import_run(sb3, runs_dir)
    with pytest.raises(ConfigError, match="is a run of gymnasium-solver already"):
        read_foreign(run.path)


def test_a_mapping_that_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,rewards\n1,2\n")
    with pytest.raises(ConfigError, match="no column 'reward'; the nearest is 'rewards'"):
        read_foreign(tmp_path / "log.csv", mapping={"train/roll/ep_rew_mean": "reward"})
    with pytest.raises(ConfigError, match="did you mean 'train/roll/ep_rew_mean'"):
        read_foreign(tmp_path / "log.csv", mapping={"ep_rew_mean": "rewards"})


def test_settings_that_our_schema_refuses(sb3: Path, runs_dir: Path) -> None:
    write_zip(sb3 / "model.zip", {**SB3_DATA, "gamma": 1.5})
    run = import_run(sb3, runs_dir)
    assert "gamma" not in run.config
    assert any("gamma (1.5" in x for x in read_json(run.path / "source.json")["missing"])
