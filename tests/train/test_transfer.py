from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.errors import CheckpointError, NotFoundError
from gymnasium_solver.train.session import Event, train

SMALL = {"n_envs": 2, "n_steps": 16, "batch_size": 16, "n_epochs": 1, "max_env_steps": 64, "eval_episodes": 1}


@pytest.mark.integration
def test_parameters_that_fit_are_loaded_and_the_rest_is_named(tmp_path: Path) -> None:
    source = train(load_config("CartPole-v1:ppo", {**SMALL, "hidden_dims": [8, 8]}), runs_dir=tmp_path, command=[])
    told: list[str] = []

    def listen(event: Event) -> None:
        if event.kind == "started":
            told.extend(event.data["init"])

    # Acrobot has other observations and actions: only the layers in between fit.
    target = load_config("Acrobot-v1:ppo", {**SMALL, "hidden_dims": [8, 8], "policy_lr": 0.0})
    run = train(target, init_from=f"{source.run_id}/@best", runs_dir=tmp_path, on_event=listen, command=[])
    old, new = source.read_checkpoint("best")[0], run.read_checkpoint("last")[0]
    kept = "params/trunk/policy/dense/1/weight"
    np.testing.assert_array_equal(old[kept], new[kept])
    assert any("params/trunk/policy/dense/0/weight" in note and "[4, 8]" in note for note in told)
    assert not any(kept in note for note in told)


@pytest.mark.integration
def test_nothing_that_fits_is_an_error(tmp_path: Path) -> None:
    source = train(load_config("CartPole-v1:ppo", {**SMALL, "hidden_dims": [8]}), runs_dir=tmp_path, command=[])
    other = load_config(
        "Pendulum-v1:ppo", {**SMALL, "hidden_dims": [9, 9], "shared_network": True, "normalize_obs": False}
    )
    with pytest.raises(CheckpointError, match="nothing in the checkpoint fits"):
        train(other, init_from=source.run_id, runs_dir=tmp_path, command=[])
    with pytest.raises(NotFoundError):
        train(other, init_from="no-such-run", runs_dir=tmp_path, command=[])
    assert len([p for p in tmp_path.iterdir() if p.name != "@last"]) == 1, "a refused training writes nothing"
