"""Text out of runs, logs, jobs and environments, whoever wrote it: in a field apart, cleaned and bounded.

An assistant reads an answer of ours as fact and may act on it. What a run says about itself is neither fact nor advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gymnasium_solver.mcp.answers import LINE, clipped
from gymnasium_solver.trust import clean

QUOTED = "quoted"
KEYS = {"error", "warnings", "lines", "notes"}  # what is not ours to say, wherever it stands in an answer
# Keys that hold such a text beside another key: why a run ended, not why we advise something; what an experiment's
# record says that it found, not what a job of ours has found.
BESIDE = {"reason": "run_id", "verdict": "continue_with"}
WRITTEN = ("cli", "yaml")  # of a recommendation: all settings of the run again
LEFT_OUT = "a command with the settings of the run is left out: one of them is a text (gsolve diagnose shows it)"
SETTINGS = "config."  # of a run: a value of several words is a text
IN_LISTS = {"progress"}  # lines of a job; elsewhere a number
LONGEST = 1000  # characters of a text that is not in lines
NAMES = {"run_id", "env_id", "algo_id", "group", "parent", "source", "library", "job_id"}  # one word, or it is a text
NAME = 200  # characters of one


def with_quotes(document: dict[str, Any]) -> dict[str, Any]:
    """The answer with text of runs moved to `quoted`, by its place."""
    quotes: dict[str, Any] = {}
    moved = {name: _moved(value, name, name, quotes) for name, value in document.items() if name != QUOTED}
    return {**moved, QUOTED: quotes}


def cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


def without_commands(document: Any, config: dict[str, Any]) -> Any:
    """As it is, unless a setting of the run is a text: commands and files that set it again would say it for us."""
    if not any(_is_text(text) for text in _strings(config)):
        return document
    if isinstance(document, dict):
        return {name: "" if name in WRITTEN else without_commands(item, config) for name, item in document.items()}
    if isinstance(document, list):
        return [without_commands(item, config) for item in document]
    return LEFT_OUT if isinstance(document, str) and "gsolve train" in document else document


def said(text: str) -> str:
    """One line of somebody else's, as a notice of progress shows it."""
    return clipped(" ".join(clean(text).split()), NAME)


def _moved(value: Any, key: str, place: str, quotes: dict[str, Any]) -> Any:
    if isinstance(value, str):
        if value and (key in KEYS or (_is_text(value) and (key in NAMES or place.startswith(SETTINGS)))):
            quotes[place] = clipped(value, LONGEST)
            return _pointer(place)
        return value
    if isinstance(value, dict):
        keys = {name: "error" if BESIDE.get(name) in value else name for name in value}
        return {name: _moved(item, keys[name], f"{place}.{name}", quotes) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    if key in KEYS | IN_LISTS and value and all(isinstance(item, str) for item in value):
        quotes[place] = [clipped(item, LINE) for item in value]
        return [_pointer(place)]
    return [_moved(item, key, f"{place}[{index}]", quotes) for index, item in enumerate(value)]


def _is_text(value: str) -> bool:
    return len(value.split()) > 1 or len(value) > NAME


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _strings(item)


def _pointer(place: str) -> str:
    return f"see {QUOTED}: {place}"
