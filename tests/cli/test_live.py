from __future__ import annotations

import io
import re
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from gymnasium_solver.cli.live import FASTEST, SLOWEST, LiveView, Throttle
from gymnasium_solver.cli.output import Lasting
from gymnasium_solver.cli.progress import EVAL_REWARD, SHOWN, EventLines, PlainLines

RUN = "20260101-120000-CartPole-v1-ppo-s42-1a2b"


class Event(NamedTuple):
    """As train.session's, whose module brings in JAX."""

    kind: str
    run: str
    data: dict[str, Any]


def event(kind: str, **data: Any) -> Any:
    return Event(kind, RUN, data)


def training(epochs: int = 30) -> list[Any]:
    config = {"env_id": "CartPole-v1", "algo_id": "ppo", "seed": 42}
    events = [
        event(
            "started",
            path="runs/x",
            config=config,
            engine="gymnasium/native",
            reason="it has a vector class of its own",
            threshold=475.0,
            max_env_steps=30_000,
            init=[],
        ),
        event("compiled", seconds=0.1),
    ]
    for epoch in range(1, epochs + 1):
        metrics = {name: float(epoch) for name in SHOWN if name != EVAL_REWARD and "q_mean" not in name}
        events.append(event("epoch", metrics={**metrics, "train/cnt/env_steps": epoch * 1000.0}))
    reward = {"ep_rew_mean": 480.0, "ep_len_mean": 480.0}
    events.append(event("evaluated", **reward, env_steps=30_000, best=True, solved=True))
    events.append(event("warning", message="KL is\nhigh"))
    events.append(event("finished", status="completed", summary={"status": "solved"}, report="report.md"))
    return events


def last_frame(output: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\x00", output)
    return plain[plain.rindex("CartPole-v1 ·") :]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_live_view_draws_everything_within_the_terminal(width: int) -> None:
    target = Console(force_terminal=True, file=io.StringIO(), width=width, height=40, color_system="standard")
    with LiveView(target) as view:
        for each in training():
            view(each)
    frame = last_frame(target.file.getvalue())  # type: ignore[attr-defined]
    for text in ("CartPole-v1 · ppo · seed 42", "train reward", "eval reward", "480", "KL divergence", "entropy"):
        assert text in frame
    assert "Q mean" not in frame, "metrics the algorithm does not report have no row"
    assert "warning: " in frame
    assert all(len(line.replace("\x00", "").rstrip()) <= width for line in frame.splitlines())
    if width >= 80:
        assert RUN in frame
        assert "30,000/30,000 steps" in frame
        assert "best 480  goal 475" in frame
        assert "█" in frame


def test_live_view_without_colour_has_no_colour_codes() -> None:
    target = Console(force_terminal=True, file=io.StringIO(), width=80, color_system=None)
    with LiveView(target) as view:
        for each in training(3):
            view(each)
    output = target.file.getvalue()  # type: ignore[attr-defined]
    assert "train reward" in output
    assert not re.search(r"\x1b\[[0-9;]*m", output)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of day, which only the test moves."""
    moment = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: moment[0])
    return moment


@pytest.mark.parametrize(("cost", "pause"), [(0.0001, FASTEST), (0.005, 0.5), (1.0, SLOWEST)])
def test_frames_are_rare_enough_to_cost_a_hundredth(cost: float, pause: float, now: list[float]) -> None:
    throttle = Throttle()
    assert throttle.ready()
    throttle.drawn(cost)
    now[0] += 0.99 * pause
    assert not throttle.ready()
    now[0] += 0.02 * pause
    assert throttle.ready()


def test_many_updates_draw_few_frames(now: list[float]) -> None:
    """500 updates in one second: a frame at the start, one at the end, and what one second allows between."""
    target = Console(force_terminal=True, file=io.StringIO(), width=100, color_system=None)
    with LiveView(target) as view:
        for each in training(500):
            view(each)
            now[0] += 1 / 500
    assert 3 <= target.file.getvalue().count("train reward") <= 1 / FASTEST + 5  # type: ignore[attr-defined]


class Gone(io.StringIO):
    """A pipe whose reader has left, or a terminal that was closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("kind", ["live", "plain", "events"])
def test_a_reader_that_goes_away_does_not_end_the_training(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Lasting(Gone())
    monkeypatch.setattr("sys.stderr", stream)
    target = Console(force_terminal=True, file=stream, width=80)  # type: ignore[arg-type]
    views: dict[str, Any] = {"live": lambda: LiveView(target), "plain": PlainLines, "events": EventLines}
    with views[kind]() as view:
        for each in training(3):
            view(each)


def test_plain_lines_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainLines(interval=0.0) as view:
        for each in training(3):
            view(each)
    out, err = capsys.readouterr()
    assert out == ""
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", err)
    assert "3,000/30,000 steps (10%)" in err
    assert "warning: KL is high" in err


def test_plain_lines_come_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainLines() as view:
        for each in training(100):
            view(each)
    assert "steps/s" not in capsys.readouterr().err, "nothing due in the first seconds"


def test_event_lines_are_json_and_thinned_out(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    view = EventLines()
    for each in training(100):
        view(each)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[0] == "started"
    assert kinds[-1] == "finished"
    assert kinds.count("epoch") <= 2
