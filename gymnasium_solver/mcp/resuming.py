"""Experiments by their directory: which tool goes on with them, and whether they can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gymnasium_solver.api.groups import UNKNOWN
from gymnasium_solver.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium_solver.mcp.place import Place

TOOLS = {"verify": "apply_and_verify", "optimize": "optimize_config", "solve": "solve_environment"}


def resumable(place: Place, experiment_id: str, kind: str, **asked: object) -> str:
    """The whole id of an experiment that may go on, if nothing was asked that it was not begun with."""
    if given := [name for name, value in asked.items() if value is not None]:
        raise ConfigError(f"resume continues an experiment as it was started; leave out {', '.join(given)}")
    group = place.experiment(experiment_id)
    found, status = str(group.record.get("kind")), place.standing(group)
    if found != kind:
        call = f"call {TOOLS[found]} with this resume" if found in TOOLS else "call list_experiments for others"
        raise ConfigError(f"{group.group_id} is of kind {found}; {call}")
    if status == "running" or status.startswith(UNKNOWN):
        raise ConfigError(f"{group.group_id} is {status}; wait for its end: call list_jobs and get_job_status")
    return group.group_id
