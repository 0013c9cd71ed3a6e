"""Where experience comes from: any Gymnasium environment, many at once, under one contract (see engine.py)."""

from gymnasium_solver.envs.choose import describe, make_engine
from gymnasium_solver.envs.engine import Step, VectorEngine
from gymnasium_solver.envs.single import make_env
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec

__all__ = ["ActionSpec", "EnvSpec", "Step", "VectorEngine", "describe", "make_engine", "make_env"]
