"""A sweep as `gsolve sweep` leaves it, without a training."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver.processes import record_of
from gymnasium_solver.verify.sweeping.space import Parameter
from gymnasium_solver.verify.sweeping.studies import Study, create_study

REF = "CartPole-v1:ppo"
LR, EPOCHS = Parameter("policy_lr", low=1e-5, high=1e-2, log=True), Parameter("n_epochs", choices=(4, 10))
SETTINGS = {
    "ref": REF,
    "overrides": ["max_env_steps=50000"],
    "objective": "steps",
    "threshold": 475.0,
    "seeds": 2,
    "space": [LR.to_dict(), EPOCHS.to_dict()],
}


def begin(runs_dir: Path, name: str = "own", **settings: Any) -> Study:
    return create_study(name, None, runs_dir, {**SETTINGS, **settings}, "tpe", "median")


def add_trial(
    study: Study,
    value: float | None,
    *,
    outcome: str = "complete",
    lr: float = 1e-3,
    epochs: int = 10,
    changed: Mapping[str, Any] | None = None,
    runs: Sequence[str] = (),
    by: Mapping[str, Any] | None = None,
    error: str = "",
) -> Any:
    """As the search tells Optuna of one; an outcome of `running` leaves it open."""
    from optuna.trial import TrialState

    study.optuna.enqueue_trial({"policy_lr": lr, "n_epochs": epochs})
    trial = study.optuna.ask({one.name: one.distribution() for one in (LR, EPOCHS)})
    trial.set_user_attr("owner", record_of() if by is None else dict(by))
    trial.set_user_attr("set", {"policy_lr": lr} if changed is None else dict(changed))
    if outcome == "running":
        return trial
    for key, told in {"outcome": outcome, "solved": 2, "seconds": 3.5, "runs": list(runs)}.items():
        trial.set_user_attr(key, told)
    if error:
        trial.set_user_attr("error", error)
    study.optuna.tell(trial, value, TrialState.COMPLETE if outcome == "complete" else TrialState.PRUNED)
    return trial


def conclude(study: Study, trial: int | None = None) -> None:
    """The check on fresh seeds, and the report, which is written last of all."""
    if trial is not None:
        sides = {"base": [60e3, 61e3, 62e3, 63e3, 64e3], "best": [20e3, 21e3, 22e3, 23e3, 24e3]}
        found = {"trial": trial, "seeds": 5, "first_seed": 1042, **sides}
        study.optuna.set_user_attr("confirmation", found)
    (study.directory / "best.yaml").write_text("env_id: CartPole-v1\n", encoding="utf-8")
    (study.directory / "report.md").write_text("# Sweep\n", encoding="utf-8")


def close(study: Study) -> None:
    """As the end of its process would: its log goes into the file."""
    study.optuna._storage.remove_session()
    study.optuna._storage._backend.engine.dispose()


def make_sweep(runs_dir: Path, name: str = "own", *, runs: Sequence[str] = (), error: str = "it broke") -> Path:
    """Of 22 trials the seventh is the best, and the learning rate is what matters."""
    study = begin(runs_dir, name)
    add_trial(study, 60e3, lr=3e-4, changed={})
    for number in range(1, 22):
        lr = 10 ** (-4.9 + 0.135 * number)
        if number == 7:
            add_trial(study, 20e3, lr=2e-3, epochs=4, changed={"policy_lr": 2e-3, "n_epochs": 4}, runs=runs)
        elif number == 20:
            add_trial(study, None, outcome="failed", lr=9e-3, error=error)
        elif number % 5 == 0:
            add_trial(study, None, outcome="pruned", lr=lr, epochs=4)
        else:
            add_trial(study, 40e3 + 1e4 * abs(number - 15), lr=lr, epochs=(4, 10)[number % 2])
    conclude(study, 7)
    close(study)
    return study.directory


def nobody() -> dict[str, Any]:
    """A process of this machine that is gone."""
    return {**record_of(), "pid": os.getpid(), "process": "another/1"}
