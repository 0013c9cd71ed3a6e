"""Which fields cannot change once a training has begun: each is marked where it is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class Fixed:
    """Marks a field whose value the checkpoint's tensors, the stored replay, the environments or the course of
    randomness depend on, or which only says how a training begins; where just an aspect of it does, that aspect."""

    aspect: Callable[[Any], Any] = lambda value: value


FIXED = Fixed()


def fixed_fields(schema: type[BaseModel]) -> dict[str, Fixed]:
    """A field that an algorithm declares anew stays as fixed as it was."""
    marked = {}
    for name in schema.model_fields:
        declared = (parent.model_fields.get(name) for parent in schema.__mro__ if hasattr(parent, "model_fields"))
        marks = (mark for field in declared if field is not None for mark in field.metadata if isinstance(mark, Fixed))
        if (mark := next(marks, None)) is not None:
            marked[name] = mark
    return marked


def changed_fixed_field(schema: type[BaseModel], before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """The first fixed field that differs between two configs, as they are written in config.json."""
    return next(
        (
            name
            for name, fixed in fixed_fields(schema).items()
            if fixed.aspect(before.get(name)) != fixed.aspect(after.get(name))
        ),
        None,
    )
