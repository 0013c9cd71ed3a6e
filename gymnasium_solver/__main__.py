"""`gsolve`, and `python -m gymnasium_solver`: a process of its own, which starts and ends fast."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

IMPORTED = 200_000  # objects; about as many are there when a training begins


def gsolve() -> NoReturn:
    collect_after_imports()
    from gymnasium_solver.cli.main import main

    sys.exit(main())


def collect_after_imports() -> None:
    """What is imported stays: to look for garbage in it, again and again and once more at exit, takes 0.4 seconds. The
    collector starts where the imports of a training end, and works as usual on all that came later."""
    usual = gc.get_threshold()

    def begin(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(begin)
        gc.set_threshold(*usual)
        if info["generation"] == 0:  # not a whole collection that somebody asked for, such as the one at exit
            gc.freeze()

    gc.callbacks.append(begin)
    gc.set_threshold(IMPORTED)


if __name__ == "__main__":
    gsolve()
