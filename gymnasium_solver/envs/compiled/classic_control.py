"""Gymnasium's classic control in JAX, single precision: the same rules, step by step.

tests/envs/compiled/test_classic_control.py puts Gymnasium's environments into thousands of states, takes the same
actions in both, and compares. States are kept as separate numbers, so that N of them are a few vectors of length N.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

Array = jax.Array
PI = np.pi


def _uniform(rng: Array, *bounds: tuple[float, float]) -> list[Array]:
    """One number within each pair of bounds."""
    low, high = np.array(bounds, np.float32).T
    return list(jax.random.uniform(rng, (len(bounds),), jnp.float32, low, high))


def _wrapped(angle: Array) -> Array:
    """The same angle within ±pi."""
    return angle - 2 * PI * jnp.round(angle / (2 * PI))


class Cart(NamedTuple):
    x: Array
    x_speed: Array
    angle: Array
    angle_speed: Array


class CartPole:
    """Balance a pole on a cart by pushing it to the left (0) or to the right (1)."""

    gravity = 9.8
    cart_mass = 1.0
    pole_mass = 0.1
    half_length = 0.5
    push = 10.0
    seconds = 0.02
    max_x = 2.4
    max_angle = 12 * PI / 180

    max_episode_steps = 500
    reward_threshold = 475.0
    observation_space = spaces.Box(
        -np.array([2 * max_x, np.inf, 2 * max_angle, np.inf], np.float32),
        np.array([2 * max_x, np.inf, 2 * max_angle, np.inf], np.float32),
    )
    action_space = spaces.Discrete(2)

    def initial(self, rng: Array) -> Cart:
        return Cart(*_uniform(rng, *[(-0.05, 0.05)] * 4))

    def transition(self, state: Cart, action: Array, rng: Array) -> Cart:
        mass = self.cart_mass + self.pole_mass
        moment = self.pole_mass * self.half_length
        sin = jnp.sin(state.angle)
        cos = jnp.sqrt(1 - sin * sin)  # cheaper than a cosine, and the pole never falls below the cart
        force = jnp.where(action == 1, self.push, -self.push)
        thrust = (force + moment * state.angle_speed**2 * sin) / mass
        inertia = self.half_length * (4 / 3 - self.pole_mass / mass * cos * cos)
        turn = (self.gravity * sin - cos * thrust) / inertia
        dt = self.seconds
        return Cart(
            x=state.x + dt * state.x_speed,
            x_speed=state.x_speed + dt * (thrust - moment / mass * turn * cos),
            angle=state.angle + dt * state.angle_speed,
            angle_speed=state.angle_speed + dt * turn,
        )

    def observation(self, state: Cart, rng: Array) -> Array:
        return jnp.stack(state)

    def reward(self, state: Cart, action: Array, next_state: Cart, rng: Array) -> Array:
        return jnp.float32(1)

    def terminal(self, state: Cart, rng: Array) -> Array:
        return (jnp.abs(state.x) > self.max_x) | (jnp.abs(state.angle) > self.max_angle)


class Links(NamedTuple):
    angle1: Array
    angle2: Array
    speed1: Array
    speed2: Array


class Acrobot:
    """Swing the tip of two hanging links above a line by a torque (-1, 0, 1) at the joint between them.

    Both links are 1 m long, weigh 1 kg, have their centre in the middle and a moment of inertia of 1, which is what
    the numbers in `_motion` are made of.
    """

    gravity = 9.8
    seconds = 0.2
    max_speed1 = 4 * PI
    max_speed2 = 9 * PI

    max_episode_steps = 500
    reward_threshold = -100.0
    observation_space = spaces.Box(
        -np.array([1, 1, 1, 1, max_speed1, max_speed2], np.float32),
        np.array([1, 1, 1, 1, max_speed1, max_speed2], np.float32),
    )
    action_space = spaces.Discrete(3)

    def initial(self, rng: Array) -> Links:
        return Links(*_uniform(rng, *[(-0.1, 0.1)] * 4))

    def transition(self, state: Links, action: Array, rng: Array) -> Links:
        """One step of Runge-Kutta, fourth order."""
        torque = jnp.asarray(action, jnp.float32) - 1
        dt = self.seconds

        def moved(slope: Links, by: float) -> Links:
            return Links(*(here + by * change for here, change in zip(state, slope, strict=True)))

        k1 = self._motion(state, torque)
        k2 = self._motion(moved(k1, dt / 2), torque)
        k3 = self._motion(moved(k2, dt / 2), torque)
        k4 = self._motion(moved(k3, dt), torque)
        mean = Links(*((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)))
        after = moved(mean, dt)
        return Links(
            _wrapped(after.angle1),
            _wrapped(after.angle2),
            jnp.clip(after.speed1, -self.max_speed1, self.max_speed1),
            jnp.clip(after.speed2, -self.max_speed2, self.max_speed2),
        )

    def observation(self, state: Links, rng: Array) -> Array:
        cos1, sin1, cos2, sin2 = _directions(state)
        return jnp.stack([cos1, sin1, cos2, sin2, state.speed1, state.speed2])

    def reward(self, state: Links, action: Array, next_state: Links, rng: Array) -> Array:
        return jnp.where(self.terminal(next_state, rng), 0.0, -1.0)

    def terminal(self, state: Links, rng: Array) -> Array:
        cos1, sin1, cos2, sin2 = _directions(state)
        height = -cos1 - (cos1 * cos2 - sin1 * sin2)
        return height > 1

    def _motion(self, state: Links, torque: Array) -> Links:
        """How fast angles and speeds change (Sutton and Barto's version of the equations)."""
        speed1, speed2 = state.speed1, state.speed2
        cos2, sin2 = jnp.cos(state.angle2), jnp.sin(state.angle2)
        d1 = 3.5 + cos2
        d2 = 1.25 + 0.5 * cos2
        weight2 = 0.5 * self.gravity * jnp.sin(state.angle1 + state.angle2)
        weight1 = 1.5 * self.gravity * jnp.sin(state.angle1) + weight2
        phi1 = weight1 - 0.5 * speed2 * sin2 * (speed2 + 2 * speed1)
        share = d2 / d1
        change2 = (torque + share * phi1 - 0.5 * speed1 * speed1 * sin2 - weight2) / (1.25 - d2 * share)
        change1 = -(d2 * change2 + phi1) / d1
        return Links(speed1, speed2, change1, change2)


def _directions(state: Links) -> tuple[Array, Array, Array, Array]:
    return jnp.cos(state.angle1), jnp.sin(state.angle1), jnp.cos(state.angle2), jnp.sin(state.angle2)


class Car(NamedTuple):
    position: Array
    speed: Array


class _Valley:
    """A car between two hills that is too weak to climb one from a standstill."""

    min_position = -1.2
    max_position = 0.6
    max_speed = 0.07
    slope = 0.0025
    goal = 0.5

    observation_space = spaces.Box(
        np.array([min_position, -max_speed], np.float32), np.array([max_position, max_speed], np.float32)
    )

    def initial(self, rng: Array) -> Car:
        (position,) = _uniform(rng, (-0.6, -0.4))
        return Car(position, jnp.float32(0))

    def observation(self, state: Car, rng: Array) -> Array:
        return jnp.stack(state)

    def terminal(self, state: Car, rng: Array) -> Array:
        return (state.position >= self.goal) & (state.speed >= 0)

    def _rolled(self, state: Car, push: Array) -> Car:
        speed = state.speed + push - self.slope * jnp.cos(3 * state.position)
        speed = jnp.clip(speed, -self.max_speed, self.max_speed)
        position = jnp.clip(state.position + speed, self.min_position, self.max_position)
        at_wall = position == np.float32(self.min_position)
        return Car(position, jnp.where(at_wall, jnp.maximum(speed, 0), speed))


class MountainCar(_Valley):
    """Push to the left (0), not at all (1) or to the right (2), until the car is over the hill."""

    force = 0.001

    max_episode_steps = 200
    reward_threshold = -110.0
    action_space = spaces.Discrete(3)

    def transition(self, state: Car, action: Array, rng: Array) -> Car:
        return self._rolled(state, self.force * (jnp.asarray(action, jnp.float32) - 1))

    def reward(self, state: Car, action: Array, next_state: Car, rng: Array) -> Array:
        return jnp.float32(-1)


class MountainCarContinuous(_Valley):
    """Push by as much as the action says; pushing costs, the goal pays."""

    force = 0.0015
    goal = 0.45

    max_episode_steps = 999
    reward_threshold = 90.0
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def transition(self, state: Car, action: Array, rng: Array) -> Car:
        return self._rolled(state, self.force * jnp.clip(action[0], -1, 1))

    def reward(self, state: Car, action: Array, next_state: Car, rng: Array) -> Array:
        return jnp.where(self.terminal(next_state, rng), 100.0, 0.0) - 0.1 * action[0] ** 2


class Rod(NamedTuple):
    angle: Array  # 0 is upright; within ±pi, where Gymnasium lets it grow and single precision would suffer
    speed: Array


class Pendulum:
    """Keep a rod of 1 m and 1 kg upright by a torque; being off, turning and torque all cost."""

    gravity = 10.0
    seconds = 0.05
    max_speed = 8.0
    max_torque = 2.0

    max_episode_steps = 200
    reward_threshold: Any = None
    observation_space = spaces.Box(-np.array([1, 1, max_speed], np.float32), np.array([1, 1, max_speed], np.float32))
    action_space = spaces.Box(-max_torque, max_torque, (1,), np.float32)

    def initial(self, rng: Array) -> Rod:
        return Rod(*_uniform(rng, (-PI, PI), (-1, 1)))

    def transition(self, state: Rod, action: Array, rng: Array) -> Rod:
        gain = 1.5 * self.gravity * jnp.sin(state.angle) + 3 * self._torque(action)
        speed = jnp.clip(state.speed + gain * self.seconds, -self.max_speed, self.max_speed)
        return Rod(_wrapped(state.angle + speed * self.seconds), speed)

    def observation(self, state: Rod, rng: Array) -> Array:
        return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.speed])

    def reward(self, state: Rod, action: Array, next_state: Rod, rng: Array) -> Array:
        return -(state.angle**2 + 0.1 * state.speed**2 + 0.001 * self._torque(action) ** 2)

    def terminal(self, state: Rod, rng: Array) -> Array:
        return jnp.bool_(False)

    def _torque(self, action: Array) -> Array:
        return jnp.clip(action[0], -self.max_torque, self.max_torque)
