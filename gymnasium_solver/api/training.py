"""A training that was asked for, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gymnasium_solver.api.request import Request
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.session import Event


def train_here(
    request: Request, config: Config | None, on_event: Callable[[Event], None], command: Sequence[str]
) -> Run:
    """Watched as it goes on: what is found is an event, and may end it. `config` is the request's own."""
    from gymnasium_solver.config.load import parse_overrides
    from gymnasium_solver.recommend.monitor import Monitor
    from gymnasium_solver.train.session import train

    return train(
        config,
        runs_dir=request.runs_dir,
        resume=request.resume,
        overrides=dict(parse_overrides(request.overrides)) if request.resume else None,
        init_from=request.init_from,
        group=request.group,
        on_event=on_event,
        command=list(command),
        make_monitor=Monitor,
        stop_on=request.stop_on,
    )
