"""What limits a training: counted work, seconds booked by hand, and a verdict on threads."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.verify.profiling import parts, threads
from gymnasium_solver.verify.profiling.clock import PHASES, Clock
from gymnasium_solver.verify.profiling.limits import limit_of, limits_of
from gymnasium_solver.verify.profiling.work import flops, peak

X, W = jnp.ones((32, 8)), jnp.ones((8, 16))
PRODUCT = 2 * 32 * 8 * 16


def test_products_are_counted_as_often_as_they_are_computed() -> None:
    def looped(x: Any, w: Any) -> Any:
        add = jax.jit(lambda total, _: (total + x @ w, None))
        return jax.lax.scan(add, x @ w, None, length=5)[0]

    def either(x: Any, w: Any) -> Any:
        return jax.lax.cond(x[0, 0] > 0, lambda: x @ w, lambda: jnp.zeros((32, 16)))

    assert flops(jnp.matmul, X, W) == PRODUCT
    assert flops(looped, X, W) == 6 * PRODUCT
    assert flops(either, X, W) == PRODUCT
    assert flops(jax.grad(lambda w: jnp.sum((X @ w) ** 2)), W) == 2 * PRODUCT  # forward, and once for the weights
    assert flops(jax.vmap(jnp.matmul), jnp.ones((3, 32, 8)), jnp.ones((3, 8, 16))) == 3 * PRODUCT
    assert flops(jnp.tanh, X) == 0


def test_convolutions_are_counted() -> None:
    image, kernel = jnp.ones((2, 3, 10, 10)), jnp.ones((4, 3, 5, 5))
    out = 2 * 4 * 6 * 6
    assert flops(lambda i, k: jax.lax.conv(i, k, (1, 1), "VALID"), image, kernel) == 2 * out * 3 * 5 * 5


def test_a_matrix_product_shows_a_peak() -> None:
    found = peak()
    assert 1e9 < found.flops_per_second < 1e13
    assert found.cores > 0


def document(**seconds: float) -> dict[str, Any]:
    """Of a training that has computed for so long; 1,000 calls of 20 µs."""
    return {
        "engine": "gymnasium/sync",
        "n_envs": 8,
        "env_steps": 1000,
        "gradient_steps": 100,
        "phases": [
            {"phase": phase, "seconds": seconds.get(phase, 0.0), "us_per_env_step": 1e3 * seconds.get(phase, 0.0)}
            for phase in PHASES
        ],
        "work": {
            "peak_gflops": 78.0,
            "peak_cores": 1.02,
            "update": {"gflops": 31.2, "of_peak": 0.4},
            "act": {"gflops": 0.0, "of_peak": 0.0},
            "calls_per_second": 500.0,
            "empty_call_us": 20.0,
            "dispatch_seconds": 0.02,
            "parts_add_up_to": None,
        },
    }


def test_the_limit_of_floating_point_is_told_with_its_numbers() -> None:
    told = document(update=6.0, act=1.0, step=2.0, record=0.5, transfer=0.5, compile=100.0, evaluate=5.0)
    limits = told["limits"] = limits_of(told)
    assert [limit["kind"] for limit in limits] == ["floating point", "environment", "dispatch", "Python"]
    assert [limit["share"] for limit in limits] == pytest.approx([0.698, 0.2, 0.052, 0.05])
    numbers = "the update does 31 GFLOP/s; one core reaches 78: 40 % of the floating-point limit"
    assert limits[0]["text"] == numbers
    assert limits[2]["text"] == "500 calls per second, 20 µs for an empty one; copies 5.0 %"
    limit = limit_of(told, {"n_epochs": 10, "batch_size": 64}, [])
    assert numbers in limit["text"]
    assert limit["text"].endswith("a different n_epochs may be faster, but learns differently")
    told["work"]["update"]["of_peak"] = 0.1
    assert "a larger batch_size" in limit_of(told, {"n_epochs": 10, "batch_size": 64}, [])["text"]


def test_calls_are_the_limit_where_acting_is_little_else() -> None:
    told = document(act=1.0, step=0.5)
    told["work"] |= {"dispatch_seconds": 0.9}
    told["limits"] = limits_of(told)
    assert told["limits"][0]["kind"] == limit_of(told, {}, [])["kind"] == "dispatch"
    assert told["limits"][0]["share"] == pytest.approx(0.6)


def test_tables_have_no_products() -> None:
    told = document(step=1.0)
    told["work"]["update"] = told["work"]["act"]
    assert {limit["kind"]: limit["text"] for limit in limits_of(told)}["floating point"] == "no matrix products"


def test_a_row_is_divided_in_the_ratio_of_its_parts() -> None:
    clock = Clock()
    clock.seconds[parts.ROW], clock.calls[parts.ROW] = 10.0, 5
    share = parts.apportion(clock, {"step": 0.2, "act": 0.4, "update": 1.0})
    assert share == pytest.approx(0.8)
    assert clock.seconds == pytest.approx(
        {("run", "epoch", "step"): 1.25, ("run", "epoch", "act"): 2.5, ("run", "epoch", "update"): 6.25}
    )


@pytest.mark.parametrize(
    ("turns", "taken", "best", "told"),
    [
        (
            [(100, 150)] * 5,
            4,
            4,
            "4 of 4 threads: 1.50 times the steps per second of 1 (1.50 to 1.50); a training takes",
        ),
        ([(100, 150)] * 5, 1, 4, "NPROC=4 gsolve train CartPole-v1:ppo"),
        ([(100, 50)] * 5, 4, 1, "1 of 4 threads: 2.00 times the steps per second of 4 (2.00 to 2.00); NPROC=1"),
        ([(100, 150)] * 4 + [(100, 90)], 1, 1, "more are not certain to be faster (0.90 to 1.50 times"),
        ([(100, 102)] * 5, 1, 1, "the other cores stay free; a training takes as many by itself"),
    ],
)
def test_threads_are_recommended_for_a_gain_in_every_turn(
    turns: list[tuple[float, float]], taken: int, best: int, told: str
) -> None:
    found = threads.judged(turns, 4, taken, load_config("CartPole-v1:ppo"))
    assert found["best"] == best
    assert told in found["verdict"]


def test_threads_that_a_training_has_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    config = load_config("CartPole-v1:ppo")
    assert threads.chosen(config, 8) == 1
    assert threads.chosen(load_config("CartPole-v1:ppo", {"hidden_dims": [1024, 1024], "batch_size": 256}), 8) == 8
    monkeypatch.setenv("NPROC", "3")
    assert threads.chosen(config, 8) == 3
