"""evaluations.npz of Stable-Baselines3's EvalCallback: returns and lengths of the episodes of each evaluation."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from pathlib import Path

import numpy as np

from gymnasium_solver.limits import LARGEST_ARRAY, read_member
from gymnasium_solver.runs.foreign.series import Series

NAMES = ("timesteps", "results", "ep_lengths")


def read_evaluations(path: Path, notes: list[str]) -> dict[str, Series]:
    """Under the names that its logger gives them. Arrays of objects, which are pickles, are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            contents = [read_member(archive, archive.getinfo(f"{name}.npy"), LARGEST_ARRAY) for name in NAMES]
        steps, returns, lengths = map(_array, contents)
        steps = steps.ravel()
        returns, lengths = (x.reshape(len(steps), -1) for x in (returns, lengths))
    except (OSError, ValueError, KeyError, NotImplementedError, zipfile.BadZipFile) as error:
        notes.append(f"{path.name} is damaged and was not read: {error}")
        return {}
    if not returns.size:
        return {}
    return {
        "eval/mean_reward": Series(steps, returns.mean(axis=1)),
        "eval/std_reward": Series(steps, returns.std(axis=1)),
        "eval/mean_ep_length": Series(steps, lengths.mean(axis=1)),
    }


def _array(content: bytes) -> np.ndarray:
    """Numbers that are there: a header may claim any shape, and memory for it would be taken before they are read."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 has written
        shape, is_fortran, dtype = read_header(file)
    if dtype.kind not in "iuf" or math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError("an array has not the numbers of its shape")
    numbers = np.frombuffer(content, dtype, offset=file.tell()).astype(float)
    return np.atleast_1d(numbers.reshape(shape, order="F" if is_fortran else "C"))
