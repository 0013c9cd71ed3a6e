"""All randomness of a run, as pure functions of its seed, a purpose and an index: nothing to save."""

from __future__ import annotations

import zlib

import numpy as np


def _sequence(seed: int, purpose: str, index: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), index])


def generator(seed: int, purpose: str, index: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(_sequence(seed, purpose, index)))


def seed_for(seed: int, purpose: str, index: int) -> int:
    """A seed for an environment, within what every environment accepts."""
    return int(_sequence(seed, purpose, index).generate_state(1)[0] >> 1)
