"""JAX set up for short start-ups."""

from __future__ import annotations

import os
from pathlib import Path


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
