"""`gsolve`, and `python -m gymnasium_solver`: a process of its own, which starts and ends fast."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

IMPORTED = 200_000  # objects; about as many are there when a training begins


def gsolve() -> NoReturn:
    collect_after_imports()
    from gymnasium_solver.cli.main import main

    code = main()
    gc.freeze()  # an interpreter that exits looks for garbage in all that it ever imported, for a third of a second
    sys.exit(code)


def collect_after_imports() -> None:
    """What is imported stays, so the collector starts where that ends, and then works as usual on what came later."""
    usual = gc.get_threshold()

    def begin(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(begin)
        gc.freeze()
        gc.set_threshold(*usual)

    gc.callbacks.append(begin)
    gc.set_threshold(IMPORTED)


if __name__ == "__main__":
    gsolve()
