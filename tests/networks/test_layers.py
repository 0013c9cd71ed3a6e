import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.networks.actor_critic import make_actor_critic
from gymnasium_solver.networks.layers import convolution, convolution_init, dense_init
from gymnasium_solver.networks.trunk import make_trunk


@pytest.mark.parametrize(("kernel", "stride", "size"), [(8, 4, 84), (4, 2, 20), (3, 1, 9), (3, 2, 11), (4, 2, 21)])
def test_convolution_equals_xla_forwards_and_backwards(kernel: int, stride: int, size: int) -> None:
    rng = np.random.default_rng(0)
    layer = convolution_init(rng, kernel, 3, 5, 1.0, True)
    x = jnp.asarray(rng.standard_normal((2, size, size, 3)), jnp.float32)

    def native(weight: jnp.ndarray) -> jnp.ndarray:
        return jax.lax.conv_general_dilated(
            x, weight, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def ours(weight: jnp.ndarray) -> jnp.ndarray:
        return convolution({"weight": weight, "bias": layer["bias"]}, x, kernel, stride)

    np.testing.assert_allclose(ours(layer["weight"]), native(layer["weight"]), rtol=1e-4, atol=1e-4)
    gradients = [jax.grad(lambda w, f=f: jnp.sum(jnp.sin(f(w))))(layer["weight"]) for f in (ours, native)]
    np.testing.assert_allclose(*gradients, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(8, 3), (3, 8)])
def test_orthogonal_weights(shape: tuple[int, int]) -> None:
    weight = dense_init(np.random.default_rng(0), *shape, gain=2.0)["weight"]
    small = weight.T @ weight if shape[0] > shape[1] else weight @ weight.T
    np.testing.assert_allclose(small, 4.0 * np.eye(3), atol=1e-5)


def network(**changes: object) -> object:
    trunk = {
        "obs_shape": (4,),
        "is_image": False,
        "hidden_dims": (16, 8),
        "activation": "tanh",
        "orthogonal": True,
        "dtype": jnp.float32,
    }
    heads = {"n_actor_params": 2, "std_dim": 0, "use_sde": False, "shared": False, "log_std_init": 0.0}
    body = make_trunk(**{name: changes.get(name, value) for name, value in trunk.items()})
    return make_actor_critic(body, orthogonal=True, **{name: changes.get(name, heads[name]) for name in heads})


@pytest.mark.parametrize("shared", [False, True])
def test_both_equals_policy_and_value(shared: bool) -> None:
    net = network(shared=shared)
    params = net.init(np.random.default_rng(0))
    obs = jnp.ones((5, 4))
    output, value = net.both(params, obs)
    np.testing.assert_allclose(output, net.policy(params, obs), rtol=1e-6)
    np.testing.assert_allclose(value, net.value(params, obs), rtol=1e-6)
    np.testing.assert_allclose(output, net.policy(net.acting_part(params), obs), rtol=1e-6)
    assert set(params) == {"trunk", "actor_head", "critic_head"}
    assert [layer.shape[-1] for layer in net.activations(params, obs)] == [16, 8]


def test_gaussian_head_has_a_free_log_std() -> None:
    net = network(n_actor_params=6, use_sde=False, std_dim=3, log_std_init=-0.5)
    params = net.init(np.random.default_rng(0))
    np.testing.assert_allclose(net.policy(params, jnp.ones((2, 4)))[:, 3:], -0.5)


@pytest.mark.parametrize("side", [84, 24])
def test_images_of_bytes(side: int) -> None:
    net = network(obs_shape=(side, side, 3), is_image=True)
    params = net.init(np.random.default_rng(0))
    images = jnp.full((2, side, side, 3), 255, jnp.uint8)
    output, value = net.both(params, images)
    assert output.shape == (2, 2)
    assert value.shape == (2,)
    assert np.isfinite(output).all()


def test_bfloat16_arithmetic_returns_float32_near_the_exact_result() -> None:
    exact, rough = network(), network(dtype=jnp.bfloat16)
    params = exact.init(np.random.default_rng(0))
    obs = jnp.ones((5, 4))
    assert rough.value(params, obs).dtype == jnp.float32
    np.testing.assert_allclose(rough.value(params, obs), exact.value(params, obs), atol=0.05)
