"""run.log in pieces: its end, or what was written since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium_solver.runs import layout

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

LONGEST = 2 << 20  # bytes read for one answer


def read_log(run: Run, lines: int, after: int | None) -> dict[str, Any]:
    """At most `lines` whole lines: the last ones, or the first behind the place `after`; `next` is where they end."""
    try:
        file = (run.path / layout.LOG).open("rb")
    except OSError:
        return {"lines": [], "next": 0}
    with file:
        size = file.seek(0, 2)
        is_tail = after is None or after > size  # a log that became shorter was begun anew
        start = max(0, size - LONGEST) if is_tail else int(after or 0)
        file.seek(start)
        data = file.read(LONGEST)
    end = data.rfind(b"\n") + 1
    if not end and len(data) == LONGEST:  # one line longer than an answer
        end = LONGEST
    found = data[:end].splitlines(keepends=True)
    if is_tail:
        found = found[1:] if start and len(found) > lines else found
        found = found[len(found) - min(lines, len(found)) :]
        place = start + end
    else:
        found = found[:lines]
        place = start + sum(map(len, found))
    return {"lines": [line.decode(errors="replace").rstrip("\r\n") for line in found], "next": place}
