"""/api/runs: the list, and everything about one run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any

import anyio.to_thread
import numpy as np
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, Response

from gymnasium_solver import api
from gymnasium_solver.api import episodes
from gymnasium_solver.api.curves import between, curve
from gymnasium_solver.api.log_pieces import read_log
from gymnasium_solver.api.served import is_experiment, still_there
from gymnasium_solver.api.store import OUTCOMES, Store, file_of, files_of, version_of
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.web import documents
from gymnasium_solver.web.answers import Answers, as_json
from gymnasium_solver.web.rates import alone

MOST_RUNS, MOST_POINTS, MOST_LINES, MOST_NAMES = 500, 5000, 5000, 100
REWARDS = "train/roll/ep_rew_mean,val/roll/ep_rew_mean"
# What `api.start` takes beside config fields is for the server to say.
NOT_FIELDS = frozenset({"ref", "seeds", "jobs", "runs_dir", "init_from"})
STOP_SECONDS = 30.0
# Whoever wrote a run wrote its pictures, and one opened by itself is a document of this server.
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
}

playing = threading.Lock()

router = APIRouter(prefix="/api/runs", tags=["runs"])


async def store_of(request: Request) -> Store:  # async, or it would take a thread of its own
    store: Store = request.app.state.store
    return store


async def answers_of(request: Request) -> Answers:
    answers: Answers = request.app.state.answers
    return answers


TheStore = Annotated[Store, Depends(store_of)]
TheAnswers = Annotated[Answers, Depends(answers_of)]
Text = Annotated[str, Query(max_length=300)]


def answer(document: Any) -> Response:
    return Response(document if isinstance(document, bytes) else as_json(document), media_type="application/json")


async def in_turn(request: Request, work: Callable[[], bytes]) -> Response:
    """Work of seconds, a few at a time, so that quick questions are answered meanwhile."""
    return answer(await anyio.to_thread.run_sync(work, limiter=request.app.state.heavy))


def bounded(name: str, asked: int, most: int) -> tuple[int, str | None]:
    return min(asked, most), f"{name} was cut to {most}, the most in one answer" if asked > most else None


@router.get("", response_model=documents.RunList)
def list_runs(
    store: TheStore,
    search: Text = "",
    status: Text = "",
    env: Text = "",
    algo: Text = "",
    group: Text = "",
    sort: Annotated[
        str, Query(max_length=50, description=f"One of {', '.join(Store.sorts)}; - before it: largest first.")
    ] = "-started_at",
    limit: Annotated[int, Query(ge=0, description=f"At most {MOST_RUNS}.")] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Runs, newest first; all words of `search` occur in the id, environment, algorithm, status, group or error."""
    limit, notice = bounded("limit", limit, MOST_RUNS)
    store.refresh()
    exact = {"status": status, "env": env, "algo": algo, "group": group}
    wanted = {name: value for name, value in exact.items() if value}
    if status and status not in OUTCOMES:
        raise ConfigError(f"status: {status!r} is unknown; use one of {', '.join(OUTCOMES)}")
    total, rows = store.index.find(search, **wanted, sort=sort, limit=limit, offset=offset)  # type: ignore[arg-type]
    if not total and (env or algo):  # perhaps in other capitals
        wanted |= {name: _as_spelt(store, f"{name}_id", wanted[name]) for name in ("env", "algo") if name in wanted}
        total, rows = store.index.find(search, **wanted, sort=sort, limit=limit, offset=offset)  # type: ignore[arg-type]
    if not total and wanted:
        notice = f"no run has {', '.join(f'{name} {value!r}' for name, value in wanted.items())}"
    document = {"total": total, "limit": limit, "offset": offset, "runs": rows, "notice": notice}
    return answer({**document, "is_experiment": is_experiment(group, store.runs_dir)})


def _as_spelt(store: Store, column: str, value: str) -> str:
    """As runs have it, whose capitals may be others."""
    _, rows = store.index.find(value, limit=MOST_RUNS)
    return next((row[column] for row in rows if str(row[column]).lower() == value.lower()), value)


@router.get("/{run_id}", response_model=documents.RunDetails)
def show(store: TheStore, run_id: str) -> Response:
    run = store.run(run_id)
    with still_there(run):
        summary = store.summary(run)
        document = {
            "summary": summary,
            "config": run.config,
            "environment": run.environment,
            "checkpoints": run.checkpoints(),
            "metrics": store.metric_names(run),
            "group": summary.get("group"),
            "files": files_of(run),
        }
    return answer(document)


@router.get("/{run_id}/metrics", response_model=documents.Metrics)
def metrics(
    store: TheStore,
    answers: TheAnswers,
    run_id: str,
    names: Annotated[
        str, Query(max_length=10_000, description=f"Separated by commas; at most {MOST_NAMES}.")
    ] = REWARDS,
    points: Annotated[int, Query(ge=2, description=f"Of each curve; at most {MOST_POINTS}.")] = 500,
    start: Annotated[float | None, Query(alias="from", allow_inf_nan=False, description="First step.")] = None,
    end: Annotated[float | None, Query(alias="to", allow_inf_nan=False, description="Last step.")] = None,
) -> Response:
    """Curves over the run's clock, thinned so that every peak stays."""
    wanted = list(dict.fromkeys(name for name in names.split(",") if name))
    if len(wanted) > MOST_NAMES:
        raise ConfigError(f"names: {len(wanted)} were asked for; ask for at most {MOST_NAMES} at a time")
    if start is not None and end is not None and start > end:
        raise ConfigError(f"from: {start:g} is behind to, {end:g}; give the smaller one as from")
    points, notice = bounded("points", points, MOST_POINTS)
    run = store.run(run_id)
    key = ("metrics", version_of(run, "metrics"), tuple(wanted), points, start, end)
    if known := answers.find(key):
        return answer(known)
    with still_there(run):
        curves, exact = store.curves(run, wanted)
    document = {
        "run_id": run.run_id,
        "clock": run.clock.name,
        "series": {name: _curve(*found, points, start, end, exact) for name, found in curves.items()},
        "missing": [name for name in wanted if name not in curves],
        "exact": exact,
        "notice": notice,
    }
    body = as_json(document)
    return answer(answers.keep(key, body) if exact else body)


def _curve(
    steps: np.ndarray, values: np.ndarray, points: int, start: float | None, end: float | None, exact: bool
) -> dict[str, Any]:
    shown = curve(*between(steps, values, start, end), points)
    return {**shown, "downsampled": not exact or shown["downsampled"]}


@router.get("/{run_id}/logs", response_model=documents.Log)
def logs(
    store: TheStore,
    run_id: str,
    lines: Annotated[int, Query(ge=0, description=f"At most {MOST_LINES}.")] = 200,
    after: Annotated[int | None, Query(ge=0, description="What `next` was in the answer before.")] = None,
) -> Response:
    """The last lines of run.log, or those written since."""
    lines, notice = bounded("lines", lines, MOST_LINES)
    run = store.run(run_id)
    with still_there(run):
        return answer({**read_log(run, lines, after), "notice": notice})


@router.get("/{run_id}/diagnosis", response_model=documents.Diagnosis)
async def diagnosis(request: Request, store: TheStore, answers: TheAnswers, run_id: str) -> Response:
    """What is wrong with the run, why, and what to change."""

    def work() -> bytes:
        run = store.run(run_id)
        key = (
            "diagnosis",
            version_of(run, "diagnosis"),
            str(run.status["status"]),
        )  # a process that dies changes no file
        with still_there(run):
            return answers.find(key) or answers.keep(key, as_json(api.diagnose(run)))

    return await in_turn(request, work)


@router.get("/{run_id}/checkpoints", response_model=list[documents.Checkpoint])
def checkpoints(store: TheStore, run_id: str) -> Response:
    """Last, best, then the newest epoch first; each with what its sidecar says."""
    run = store.run(run_id)
    with still_there(run):
        return answer([run.describe_checkpoint(name) for name in run.checkpoints()])


@router.get("/{run_id}/episode", response_model=documents.Episode)
def episode(
    store: TheStore,
    answers: TheAnswers,
    run_id: str,
    checkpoint: Annotated[str, Query(max_length=100)] = "best",
    seed: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
) -> Response:
    """Play an episode with a checkpoint, in numbers and pictures; one at a time, the same again if a seed is given."""
    run = store.run(run_id)
    name = run.require_checkpoint(checkpoint)
    key = ("episode", version_of(run, name), name, seed)
    if seed is not None and (known := answers.find(key)):
        return answer(known)
    with alone(playing, "another episode is being played; only one can be at a time", 5), still_there(run):
        played = as_json(episodes.play_apart(run.path.resolve(), name, seed))
    return answer(played if seed is None else answers.keep(key, played))


@router.get("/{run_id}/files/{path:path}", response_class=FileResponse)
def file(store: TheStore, run_id: str, path: str) -> FileResponse:
    """report.md, or a picture in plots/."""
    place = file_of(store.run(run_id), path)
    if path.endswith(".svg"):
        return FileResponse(place, media_type="image/svg+xml", headers=PICTURE_HEADERS)
    return FileResponse(place, media_type="text/markdown; charset=utf-8")


@router.post("", response_model=documents.Started, status_code=201)
def start(store: TheStore, wanted: documents.Start) -> Response:
    """Train in a process that outlives the server."""
    overrides = dict(wanted.overrides)
    if clash := NOT_FIELDS & overrides.keys():
        raise ConfigError(f"overrides: {', '.join(sorted(clash))} is not a config field")
    if wanted.max_env_steps is not None:
        overrides["max_env_steps"] = wanted.max_env_steps
    started = api.start(wanted.config_id, seeds=wanted.seeds, runs_dir=store.runs_dir, **overrides)
    body = as_json({"run_id": started, "group": started if wanted.seeds > 1 else None})
    return Response(body, 201, media_type="application/json")


@router.post("/{run_id}/stop", response_model=documents.Stopped)
def stop(store: TheStore, run_id: str) -> Response:
    """Ask a training, or all seeds of a group, to save and end, and wait for that."""
    return answer(api.stop(store.run_or_group(run_id), timeout=STOP_SECONDS))
