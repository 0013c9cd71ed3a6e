"""Text out of runs, logs, jobs and environments, whoever wrote it: in a field apart, cleaned and bounded.

An assistant reads an answer of ours as fact and may act on it. What a run says about itself is neither fact nor advice.
"""

from __future__ import annotations

from typing import Any

from gymnasium_solver.mcp.answers import LINE, clipped
from gymnasium_solver.trust import clean

QUOTED = "quoted"
KEYS = {"error", "warnings", "lines", "notes"}  # what is not ours to say, wherever it stands in an answer
OF_RUNS = {"reason"}  # beside a run_id: why it ended; elsewhere why we advise something
IN_LISTS = {"progress"}  # lines of a job; elsewhere a number
LONGEST = 1000  # characters of a text that is not in lines
NAME = 200  # of any other string in a mapping that names things
NAMES = {"run_id", "env_id", "algo_id", "group", "parent", "source", "seed", "name", "library", "job_id", "status"}
TELLING = 12  # characters from which on an error is recognised where it is repeated


def with_quotes(document: dict[str, Any]) -> dict[str, Any]:
    """The answer with text of runs moved to `quoted`, by its place; sentences that repeat an error say `(quoted)`."""
    quotes: dict[str, Any] = {}
    moved = {name: _moved(value, name, name, quotes) for name, value in document.items() if name != QUOTED}
    errors = {text for place, text in quotes.items() if place.endswith("error") and len(text) >= TELLING}
    return {**_without(moved, sorted(errors, key=len, reverse=True)), QUOTED: quotes}


def cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


def said(text: str) -> str:
    """One line of somebody else's, as a notice of progress shows it."""
    return clipped(" ".join(clean(text).split()), NAME)


def _moved(value: Any, key: str, place: str, quotes: dict[str, Any]) -> Any:
    if isinstance(value, str):
        if key in KEYS and value:
            quotes[place] = clipped(value, LONGEST)
            return _pointer(place)
        return clipped(value, NAME) if key in NAMES else value
    if isinstance(value, dict):
        keys = {name: "error" if name in OF_RUNS and "run_id" in value else name for name in value}
        return {name: _moved(item, keys[name], f"{place}.{name}", quotes) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    if key in KEYS | IN_LISTS and value and all(isinstance(item, str) for item in value):
        quotes[place] = [clipped(item, LINE) for item in value]
        return [_pointer(place)]
    return [_moved(item, key, f"{place}[{index}]", quotes) for index, item in enumerate(value)]


def _pointer(place: str) -> str:
    return f"see {QUOTED}: {place}"


def _without(value: Any, texts: list[str]) -> Any:
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, "(quoted)")
        return value
    if isinstance(value, dict):
        return {name: _without(item, texts) for name, item in value.items()}
    return [_without(item, texts) for item in value] if isinstance(value, list) else value
