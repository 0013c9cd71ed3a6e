"""What is wrong with a config, in one sentence that names the nearest valid value."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import ValidationError

from gymnasium_solver.config.base import RunConfig
from gymnasium_solver.config.parameter_names import our_names

BUDGETS = ("max_env_steps", "max_updates")
SCHEDULE_FIELDS = ("start", "end", "schedule", "warmup", "from", "to", "clock")


def explain(error: ValidationError, schema: type[RunConfig]) -> str:
    return "; ".join(dict.fromkeys(_sentence(e, schema) for e in _relevant(error)))


def _relevant(error: ValidationError) -> list[Any]:
    """A field that takes a number or a schedule fails as both; keep what fits what was written."""
    by_field: dict[Any, list[Any]] = {}
    for e in error.errors():
        by_field.setdefault(e["loc"][:1], []).append(e)
    kept = []
    for errors in by_field.values():
        of_schedule = [e for e in errors if e["type"] not in ("float_type", "int_type", "model_type")]
        is_mapping = any(isinstance(e["input"], dict) for e in errors) or any(
            "Schedule" in e["loc"][:-1] for e in errors
        )
        kept += (of_schedule or errors) if is_mapping or len(errors) == 1 else errors[-1:]
    return kept


def _sentence(e: Any, schema: type[RunConfig]) -> str:
    loc = [str(part) for part in e["loc"] if part not in ("Schedule", "float", "int") and "function" not in str(part)]
    field, value, context = ".".join(loc), e["input"], e.get("ctx", {})
    match e["type"]:
        case "extra_forbidden":
            if len(loc) > 1:
                return f"{field}: unknown field (value {value!r}){near(loc[-1], SCHEDULE_FIELDS)}"
            ours = [name for name in our_names(field) if name in schema.model_fields]
            if field in BUDGETS:
                return f"{field}: this algorithm trains for {next(b for b in BUDGETS if b != field)}; set that instead"
            hint = f"; here it is called {ours[0]!r}" if ours else near(field, schema.model_fields)
            return f"{field}: unknown field (value {value!r}){hint}"
        case "missing":
            return f"{field}: missing; add it"
        case "literal_error":
            expected = context["expected"]
            return f"{field}: {value!r} is not one of {expected}{near(value, _quoted(expected))}"
        case "greater_than_equal" | "less_than_equal":
            bound = next(iter(context.values()))
            return f"{field}: {value!r} is out of range ({e['msg'].lower()}); the nearest valid value is {bound}"
        case "greater_than" | "less_than":
            return f"{field}: {value!r} is out of range ({e['msg'].lower()}){_default_of(schema, loc[0])}"
        case "value_error":
            text = str(context["error"])
            if "must be > " in text:
                text += _default_of(schema, loc[0])
            return f"{field}: {text}" if field and not text.startswith(field) else text
        case _:
            return f"{field}: {value!r} cannot be used ({e['msg'].lower()})"


def _default_of(schema: type[RunConfig], field: str) -> str:
    """An open bound has no nearest valid value; the default is one that works."""
    default = schema.model_fields[field].default
    return "; leave it unset, or give a larger one" if default is None else f"; the default is {default}"


def _quoted(expected: str) -> list[str]:
    return expected.replace(" or ", ", ").replace("'", "").split(", ")


def near(word: str, choices: Any) -> str:
    close = difflib.get_close_matches(str(word), [str(c) for c in choices], n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
