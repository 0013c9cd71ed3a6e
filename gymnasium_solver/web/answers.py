"""Documents as the bytes of an answer, kept while they hold."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any

from gymnasium_solver.plain import plain

KEPT_BYTES = 32 << 20


class Answers:
    """Documents that cost something to make, as bytes, for as long as what they were made of is the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: Any) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Any, answer: bytes) -> bytes:
        with self._lock:
            self._bytes += len(answer) - len(self._kept.pop(key, b""))
            self._kept[key] = answer
            while self._bytes > KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return answer


def as_json(document: Any) -> bytes:
    try:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):  # NaN, or NumPy's own; most documents have none, and looking for them takes longer
        text = json.dumps(plain(document), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")
