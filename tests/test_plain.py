from __future__ import annotations

import pytest

from gymnasium_solver.plain import duration


@pytest.mark.parametrize(("seconds", "text"), [(None, "-"), (2.51, "2.5 s"), (61, "1 min 01 s"), (7260, "2 h 01 min")])
def test_durations_read_well(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
