"""evaluations.npz of Stable-Baselines3's EvalCallback: returns and lengths of the episodes of each evaluation."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from gymnasium_solver.runs.foreign.series import Series

MAX_BYTES = 1 << 28


def read_evaluations(path: Path, notes: list[str]) -> dict[str, Series]:
    """Under the names that its logger gives them. Arrays of objects, which are pickles, are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                notes.append(f"{path.name} is larger than {MAX_BYTES >> 20} MB and was not read")
                return {}
        with np.load(path, allow_pickle=False) as arrays:
            steps = np.asarray(arrays["timesteps"], float).ravel()
            returns = np.asarray(arrays["results"], float).reshape(len(steps), -1)
            lengths = np.asarray(arrays["ep_lengths"], float).reshape(len(steps), -1)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        notes.append(f"{path.name} is damaged and was not read: {error}")
        return {}
    if not returns.size:
        return {}
    return {
        "eval/mean_reward": Series(steps, returns.mean(axis=1)),
        "eval/std_reward": Series(steps, returns.std(axis=1)),
        "eval/mean_ep_length": Series(steps, lengths.mean(axis=1)),
    }
