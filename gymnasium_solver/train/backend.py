"""JAX set up for short start-ups, and with the threads that the work ahead can use."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

# Multiply-adds in the largest matrix product of a gradient step. Two threads on 4 million (64 rows, 256×256) took up to
# twice the time of one and twice its processor time; on 17 million (256 rows) they made 1.0 to 1.6 times its speed.
_WORTH_THREADS = 8_000_000


def cache_directory() -> Path:
    """Compiled programs are kept here between runs, so that the second start of a config hardly compiles."""
    if explicit := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gymnasium-solver" / "xla"


def configure() -> None:
    # LLVM's higher levels lengthen compilation by a fifth and were not measured to speed up updates of these networks.
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_optimization_level" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_optimization_level=1".strip()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

    import jax

    # Computing in the calling thread halves the latency of acting, which a rollout pays at every step.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_compilation_cache_dir", str(cache_directory()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def threads_for(config: Any, spec: Any) -> int | None:
    """1 where the update's products are too small for more; None leaves the number to XLA."""
    if spec.is_image:
        return None
    named = (getattr(config, name, None) for name in ("minibatch", "batch_size", "rollout"))
    rows = next(filter(None, named), 0)
    widths = (math.prod(spec.obs_shape), *getattr(config, "hidden_dims", ()))
    largest = max((rows * a * b for a, b in itertools.pairwise(widths)), default=0)
    return 1 if largest < _WORTH_THREADS else None


def start(config: Any, spec: Any) -> None:
    """Make XLA's client for this training. A process has one: where it is there already, it keeps its threads, and so
    it does where NPROC in the environment says how many."""
    threads = threads_for(config, spec)
    if threads is None or "NPROC" in os.environ:
        return
    import jax

    os.environ["NPROC"] = str(threads)  # read once, when the client is made
    try:
        jax.devices()
    finally:
        del os.environ["NPROC"]
