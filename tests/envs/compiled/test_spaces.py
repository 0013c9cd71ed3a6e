"""Observations and actions of the compiled engine are converted as those of the host are."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from gymnasium import spaces

from gymnasium_solver.envs.actions import action_codec
from gymnasium_solver.envs.compiled.spaces import action_decoder, observation_encoder
from gymnasium_solver.envs.observations import observation_codec

N = 64
OBSERVATIONS = {
    "vector": spaces.Box(-1, 1, (3,), np.float32),
    "scalar": spaces.Box(-1, 1, (), np.float32),
    "matrix": spaces.Box(-1, 1, (2, 3), np.float32),
    "discrete": spaces.Discrete(5, start=-2),
}
ACTIONS = {
    "discrete": spaces.Discrete(3, start=5),
    "multi_discrete": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "grid": spaces.MultiDiscrete([[3, 2], [2, 4]]),
    "torque": spaces.Box(-2, 2, (1,), np.float32),
    "unit": spaces.Box(-1, 1, (2,), np.float32),
    "uneven": spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32)),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "nearly_unbounded": spaces.Box(-3e38, 3e38, (2,), np.float32),
    "half_bounded": spaces.Box(np.array([0, -3], np.float32), np.array([np.inf, 1], np.float32)),
    "square": spaces.Box(-4, 4, (2, 2), np.float32),
    "whole": spaces.Box(0, 9, (2,), np.int64),
}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_observations(name: str) -> None:
    space = OBSERVATIONS[name]
    space.seed(0)
    seen = np.array([space.sample() for _ in range(N)])
    codec = observation_codec(space, "test")
    want = np.empty((N, *codec.shape), codec.dtype)
    codec.write(seen, want)
    encode = observation_encoder(space)
    got = np.asarray(jax.jit(encode)(seen))
    assert got.dtype == codec.dtype
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(jax.vmap(encode)(seen), want)
    in_time = np.asarray(encode(jax.numpy.asarray(seen.reshape(4, N // 4, *space.shape))))
    np.testing.assert_array_equal(in_time, want.reshape(4, N // 4, *codec.shape))


@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("name", ACTIONS)
def test_actions(name: str, rescale: bool) -> None:
    space = ACTIONS[name]
    codec = action_codec(space, rescale, "test")
    rng = np.random.default_rng(0)
    if codec.spec.kind == "box":
        put_out = rng.normal(0, 1, (N, codec.spec.dim)).astype(np.float32)  # some outside of [-1, 1]
        put_out[:2] = [[-1.0], [1.0]]
    else:
        put_out = rng.integers(0, codec.spec.sizes, (N, codec.spec.dim)).astype(np.int32)
        put_out = put_out[:, 0] if codec.spec.kind == "discrete" else put_out
    want = codec.batch(put_out)
    decode = action_decoder(space, rescale)
    for got in (jax.jit(decode)(put_out), jax.vmap(decode)(put_out)):
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        # A fused multiply-add rounds once where NumPy rounds twice; spans are up to 5 wide.
        np.testing.assert_allclose(got, want, rtol=3e-7, atol=np.spacing(np.float32(5)))
        assert np.all(np.asarray(got) >= getattr(space, "low", -np.inf))
        assert np.all(np.asarray(got) <= getattr(space, "high", np.inf))
