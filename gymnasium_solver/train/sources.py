"""Which source brings the experience of an engine."""

from __future__ import annotations

from gymnasium_solver.envs.compiled.engine import CompiledEngine
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.train.compiled_source import CompiledSource
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.train.parts import Arrays, Source
from gymnasium_solver.train.source import HostSource


def make_source(engine: VectorEngine | CompiledEngine, learner: Learner, seed: int) -> Source:
    if isinstance(engine, CompiledEngine):
        return CompiledSource(engine, learner.algorithm)
    return HostSource(engine, learner.algorithm, learner.act, learner.config.n_steps, seed)


def can_resume(arrays: Arrays) -> bool:
    """Whether a checkpoint says where the environments stood."""
    return HostSource.can_resume(arrays) or CompiledSource.can_resume(arrays)
