"""/api beside runs: configurations, comparisons, experiments, the catalogue of metrics, and events."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from gymnasium_solver import api
from gymnasium_solver.api import configs as configurations
from gymnasium_solver.api import metrics, served
from gymnasium_solver.api.groups import Group
from gymnasium_solver.api.store import Store
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.web import documents
from gymnasium_solver.web.answers import as_json
from gymnasium_solver.web.events import Events
from gymnasium_solver.web.run_routes import Text, TheStore, answer, in_turn

MOST_COMPARED = 100
MOST_TRIALS = 1000
LISTED = (
    *("experiment", "kind", "status", "started_at", "asked", "env_id", "algo_id", "source", "verdict", "solved"),
    *("winner", "threshold", "trainings", "duration_s", "error"),
)
LISTING_SECONDS = 5.0  # all configuration files take a second to read

router = APIRouter(prefix="/api")


@router.get("/health", response_model=documents.Health, tags=["server"])
def health(request: Request, store: TheStore) -> Response:
    settings = request.app.state.settings
    document = {"name": "gymnasium-solver", "version": request.app.version}
    return answer({**document, "runs_dir": str(store.runs_dir.resolve()), "read_only": settings.read_only})


@router.get("/compare", response_model=documents.Comparison, tags=["runs"])
async def compare(
    request: Request,
    store: TheStore,
    run_ids: Annotated[str, Query(max_length=20_000, description="Runs or groups of seeds, separated by commas.")],
    group_by: Text = "",
) -> Response:
    """Runs side by side over seeds, as `gsolve compare` does it."""
    refs = [ref for ref in run_ids.split(",") if ref]
    if len(refs) > MOST_COMPARED:
        raise ConfigError(f"run_ids: {len(refs)} were given; compare at most {MOST_COMPARED} at a time, or groups")

    def work() -> bytes:
        found = [store.run_or_group(ref) for ref in refs]
        return as_json(api.compare(*found, group_by=group_by or None))

    return await in_turn(request, work)


@router.get("/configs", response_model=list[documents.ConfigEntry], tags=["configs"])
def configs(request: Request, env_filter: Text = "") -> Response:
    """What can be trained, as ENV:VARIANT; files that cannot be read are at the end, with their `problem`."""
    read, rows = getattr(request.app.state, "configs", (0.0, []))
    if not rows or time.monotonic() - read > LISTING_SECONDS:
        found, problems = configurations.listing()
        rows = [
            *(_entry(f"{env_id}:{variant}", env_id, variant, file) for env_id, variant, file in found),
            *(_entry(file.name, file.stem, "", file, why) for file, why in problems.items()),
        ]
        request.app.state.configs = (time.monotonic(), rows)
    return answer([row for row in rows if env_filter.lower() in row["config_id"].lower()])


def _entry(config_id: str, env_id: str, variant: str, file: Path, problem: str | None = None) -> dict[str, Any]:
    return {"config_id": config_id, "env_id": env_id, "variant": variant, "file": file.name, "problem": problem}


@router.get("/configs/{config_id:path}", response_model=documents.Configuration, tags=["configs"])
def config(config_id: str) -> Response:
    """Fully resolved, as fields and as YAML."""
    if configurations.requires_import(config_id):
        raise ConfigError(f"{config_id!r} is code of your own; gsolve config {config_id!r} shows its settings")
    return answer({"config_id": config_id, **configurations.as_document(api.config(config_id))})


@router.get("/metrics-catalogue", response_model=documents.Catalogue, tags=["server"])
def metrics_catalogue() -> Response:
    """Every metric's name, unit, meaning and healthy range."""
    return answer({"metrics": metrics.catalogue()})


@router.get("/experiments", response_model=documents.ExperimentList, tags=["experiments"])
def experiments(
    store: TheStore,
    limit: Annotated[int, Query(ge=0, description="At most 500.")] = 100,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """What solve, optimize, verify and sweep left beside the runs, newest first."""
    store.refresh()
    found = served.experiments(store.runs_dir)
    shown = (_record(store, one) for one in found[offset : offset + min(limit, 500)])
    rows = [{name: one.get(name) for name in LISTED} for one in shown]
    return answer({"total": len(found), "experiments": rows})


@router.get("/experiments/{experiment_id}", response_model=documents.Experiment, tags=["experiments"])
def experiment(store: TheStore, experiment_id: str) -> Response:
    """The whole record, with a line for every training that is finished, or for every trial of a sweep."""
    found = served.experiment(experiment_id, store.runs_dir)
    store.refresh()
    return answer({**_record(store, found), "trials": found.trials()[:MOST_TRIALS]})


def _record(store: Store, group: Group) -> dict[str, Any]:
    record = {"kind": None, "started_at": group.started_at, **group.record, "experiment": group.group_id}
    return {**record, "status": store.standing(group)}


@router.get("/events", tags=["server"], response_class=StreamingResponse)
async def events(request: Request, store: TheStore, run_id: Text = "") -> StreamingResponse:
    """Server-sent events: `run` {summary}, `rows` {run_id, from, to} on its clock, `deleted` {run_id}, `heartbeat`."""
    import anyio.to_thread

    source: Events = request.app.state.events
    source.require_room()
    name = (await anyio.to_thread.run_sync(store.run, run_id)).run_id if run_id else None
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(source.stream(name), media_type="text/event-stream", headers=headers)
