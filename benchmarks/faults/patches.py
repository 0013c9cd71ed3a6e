"""Code-level faults: context managers that replace functions of the training until the block ends.

A run traces and compiles its functions when it starts, so a patch has to be entered before and left after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import jax.numpy as jnp
import numpy as np

from gymnasium_solver.algorithms import dqn, ppo, sac, td3
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.envs import local
from gymnasium_solver.networks import actor_critic, critics, layers, policy
from gymnasium_solver.ops import losses, tanh_gaussian
from gymnasium_solver.ops.descent import Descent, descent_for
from gymnasium_solver.train import learner, replay_feed

Patch = Callable[[], Any]  # makes a context manager


def _replaced(*replacements: tuple[Any, str, Any]) -> Patch:
    @contextmanager
    def patch() -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, value in replacements:
                stack.enter_context(mock.patch.object(owner, name, value))
            yield

    return patch


def _changed_algorithm(change: Callable[[Algorithm], Algorithm]) -> Patch:
    """The algorithm that is trained, with some of its functions exchanged."""
    make = learner.make_algorithm
    return _replaced((learner, "make_algorithm", lambda config, spaces: change(make(config, spaces))))


def _changed_batch(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """What every update learns from: a rollout [T, N], or minibatches [G, B] of a replay."""

    def wrap(algorithm: Algorithm) -> Algorithm:
        def update(state: Any, batch: dict[str, Any], hp: Any, noise: Any) -> Any:
            return algorithm.update(state, batch | change(batch), hp, noise)

        return algorithm._replace(update=update)

    return _changed_algorithm(wrap)


def _never_ends(batch: dict[str, Any]) -> dict[str, Any]:
    if "discount" in batch:  # of a replay: 0 where the episode ended
        return {"discount": jnp.full_like(batch["discount"], jnp.max(batch["discount"]))}
    # A reset step has reward 0, which would tell of the ending all the same.
    reward = jnp.where(batch["valid"], batch["reward"], jnp.roll(batch["reward"], 1, axis=0))
    return {"reward": reward} | {name: jnp.zeros_like(batch[name]) for name in ("terminated", "truncated")}


def _other_rows_action(batch: dict[str, Any]) -> dict[str, Any]:
    return {"action": jnp.roll(batch["action"], 1, axis=1 if "discount" in batch else 0)}


_surrogate, _policy_gradient = losses.clipped_surrogate, losses.policy_gradient


def _ascends(log_ratio: Any, advantage: Any, weight: Any, clip_range: Any) -> Any:
    return _surrogate(log_ratio, -advantage, weight, clip_range)


def _dead(log_ratio: Any, advantage: Any, weight: Any, clip_range: Any) -> Any:
    """As if the old log-probabilities were computed anew, with their gradient, in every minibatch."""
    return _surrogate(log_ratio - log_ratio, advantage, weight, clip_range)


def _detached(log_prob: Any, advantage: Any, weight: Any) -> Any:
    return _policy_gradient(log_prob - log_prob, advantage, weight)


def _wrong_old_log_prob(corrupt: Callable[[Any], Any]) -> Patch:
    """Minibatches have `evaluate`; only the pass over the whole rollout before them asks for `log_prob` alone."""
    policy_for = ppo.stochastic_policy_for

    def make(config: Any, spaces: Any) -> Any:
        policy = policy_for(config, spaces)
        return policy._replace(log_prob=lambda *arguments: corrupt(policy.log_prob(*arguments)))

    return _replaced((ppo, "stochastic_policy_for", make))


def _noise(value: Any) -> Any:
    return value + 0.2 * jnp.asarray(np.random.default_rng(0).standard_normal(value.shape), value.dtype)


def _zeros(rng: Any, n_in: int, n_out: int, gain: float, orthogonal: bool = True) -> Any:
    return {"weight": np.zeros((n_in, n_out), np.float32), "bias": np.zeros(n_out, np.float32)}


def _blind_evaluation(algorithm: Algorithm) -> Algorithm:
    """The policy acts greedily on observations that the normaliser's statistics were not loaded for."""

    def greedy(actor: Any, carry: Any, obs: Any, mask: Any) -> Any:
        fresh = algorithm.actor(algorithm.init(np.random.default_rng(0)))
        return algorithm.greedy(actor._replace(obs_statistics=fresh.obs_statistics), carry, obs, mask)

    return algorithm._replace(greedy=greedy)


def _same_noise(algorithm: Algorithm) -> Algorithm:
    """Environments that share a seed, and a policy that shares one too."""

    def acting_noise(rng: Any, shape: tuple[int, ...], hp: Any) -> np.ndarray:
        noise = algorithm.acting_noise(rng, shape, hp)
        return np.repeat(noise[:, :1], shape[1], axis=1) if len(shape) > 1 else noise

    return algorithm._replace(acting_noise=acting_noise)


@contextmanager
def _alike() -> Iterator[None]:
    with (
        _changed_algorithm(_same_noise)(),
        mock.patch.object(local, "environment_seeds", lambda seed, n: [int(seed) & 0x7FFFFFFF] * n),
    ):
        yield


def _with_truncation_terminal(batch: dict[str, Any]) -> dict[str, Any]:
    return {"terminated": batch["terminated"] | batch["truncated"]}


def _stored_as_terminal() -> Patch:
    """Replays keep the flag that they are given."""
    add = replay_feed.Replay.add

    def add_terminal(self: Any, batch: dict[str, Any], *rest: Any) -> None:
        add(self, batch | _with_truncation_terminal(batch), *rest)

    return _replaced((replay_feed.Replay, "add", add_terminal))


def _descending(config: Any) -> Descent:
    """The policy follows the critic's gradient downhill; the critic itself learns as it should."""
    descent = descent_for(config)

    def step(vector: Any, state: Any, gradients: Any, rate: Any, layout: Any) -> Any:
        sign = -1.0 if "actor_head" in layout.segments else 1.0
        return descent.step(vector, state, gradients, sign * rate, layout)

    return descent._replace(step=step)


def _without_jacobian(output: Any, normal: Any) -> Any:
    action, _ = _tanh_sample(output, normal)
    _, log_std = tanh_gaussian.split(output)
    return action, jnp.sum(-0.5 * jnp.square(normal) - log_std - 0.9189385, axis=-1)


_tanh_sample, _kl = tanh_gaussian.sample, losses.kl_estimate
_keeps = lambda target, online, tau: target  # noqa: E731
_dense_users = (layers, actor_critic, critics, policy)

PATCHES: dict[str, Patch] = {
    "dones-ignored": _changed_batch(_never_ends),
    "action-of-another-row": _changed_batch(_other_rows_action),
    "truncation-terminal": _changed_batch(_with_truncation_terminal),
    "truncation-terminal-replay": _stored_as_terminal(),
    "advantage-negated": _replaced((losses, "clipped_surrogate", _ascends)),
    "advantage-negated-single-step": _replaced(
        (losses, "policy_gradient", lambda log_prob, advantage, weight: _policy_gradient(log_prob, -advantage, weight))
    ),
    "surrogate-dead": _replaced((losses, "clipped_surrogate", _dead)),
    "policy-gradient-detached": _replaced((losses, "policy_gradient", _detached)),
    "old-log-prob-noisy": _wrong_old_log_prob(_noise),
    "old-log-prob-of-another-row": _wrong_old_log_prob(lambda value: jnp.roll(value, 1)),
    "old-log-prob-missing": _wrong_old_log_prob(jnp.zeros_like),
    "zero-init": _replaced(*((module, "dense_init", _zeros) for module in _dense_users)),
    "target-never-copied": _replaced((replay_feed.ReplayFeed, "_copies_due", lambda self, before, after: 0.0)),
    "target-never-follows": _replaced(*((module, "polyak", _keeps) for module in (dqn, sac, td3))),
    "statistics-not-loaded": _changed_algorithm(_blind_evaluation),
    "environments-alike": _alike,
    "no-tanh-jacobian": _replaced((tanh_gaussian, "sample", _without_jacobian)),
    "kl-negative": _replaced((losses, "kl_estimate", lambda log_ratio, weight: -_kl(log_ratio, weight))),
    "actor-descends": _replaced((td3, "descent_for", _descending), (sac, "descent_for", _descending)),
}
