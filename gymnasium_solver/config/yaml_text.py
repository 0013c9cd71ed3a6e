"""YAML as values, within limits: an alias costs what it stands for, because whoever walks the value meets it again."""

from __future__ import annotations

from typing import Any

import yaml

from gymnasium_solver.limits import DEEPEST, LARGEST_YAML, MOST_VALUES_OF_YAML, size

LONGEST_NUMBER = 4300  # characters, as in Python's own int()
# What PyYAML lets through of a scalar that its tag does not fit: `!!int ''`, `!!bool maybe`, `!!timestamp now`.
_MISFITS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


class BoundedLoader(yaml.SafeLoader):
    def __init__(self, text: str | bytes) -> None:
        if len(text) > LARGEST_YAML:
            raise yaml.YAMLError(f"larger than {size(LARGEST_YAML)}")
        super().__init__(text)
        self._values = self._depth = 0
        self._values_of: dict[str, int] = {}  # by anchor; none yet while what it names is being read

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        before = self._values
        self._values += self._inside(event) if isinstance(event, yaml.AliasEvent) else 1
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._refusal(f"nested more than {DEEPEST} deep", event)
        if self._values > MOST_VALUES_OF_YAML:
            raise self._refusal(f"more than {MOST_VALUES_OF_YAML:,} values, aliases written out", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self._values_of[event.anchor] = self._values - before
        return node

    def construct_scalar(self, node: Any) -> Any:
        is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if is_number and len(node.value) > LONGEST_NUMBER:
            raise yaml.constructor.ConstructorError(None, None, "a number too long to be one", node.start_mark)
        return super().construct_scalar(node)

    def _inside(self, event: yaml.AliasEvent) -> int:
        if event.anchor in self.anchors and event.anchor not in self._values_of:
            raise self._refusal(f"*{event.anchor} is inside of what it stands for", event)
        return self._values_of.get(str(event.anchor), 1)  # an unknown one is refused by the parser

    @staticmethod
    def _refusal(problem: str, event: Any) -> yaml.YAMLError:
        return yaml.composer.ComposerError(None, None, problem, event.start_mark)


def parse_yaml(text: str | bytes, loader: type[BoundedLoader] = BoundedLoader) -> Any:
    """The value; YAMLError if it is none, or more than is read."""
    try:
        return yaml.load(text, loader)
    except _MISFITS as error:
        raise yaml.YAMLError(f"a value is not what it says it is: {error}") from error
