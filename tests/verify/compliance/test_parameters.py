"""What a function's parameters are found to mean, and what is said where they are not understood."""

from __future__ import annotations

import numpy as np
import pytest

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance import validate
from gymnasium_solver.verify.compliance.parameters import ALIASES, detect_kind, map_parameters, meaning_of


def right_loss(logp, old_logp, adv, eps):
    ratio = np.exp(logp - old_logp)
    return -np.minimum(ratio * adv, np.clip(ratio, 1 - eps, 1 + eps) * adv).mean()


def test_names_are_understood() -> None:
    for kind, ours in ALIASES.items():
        assert all(meaning_of(name, kind) == name for name in ours)
    assert meaning_of("mb_advantages", "loss") == "advantages"
    assert meaning_of("b_logprobs", "loss") == "log_prob"
    assert meaning_of("lambda_", "gae") == "gae_lambda"
    assert meaning_of("v_tp1", "gae") == "next_values"
    assert meaning_of("colour", "gae") is None


def test_an_alias_means_one_thing() -> None:
    for table in ALIASES.values():
        every = [alias for aliases in table.values() for alias in aliases.split()]
        assert len(every) == len(set(every))


def test_a_parameter_can_be_mapped_by_hand() -> None:
    def odd(first, second, signal, width):
        return right_loss(first, second, signal, width)

    mapping = {"log_prob": "first", "old_log_prob": "second", "advantages": "signal", "clip_range": "width"}
    assert validate("ppo", odd, mapping=mapping)["compliant"]
    with pytest.raises(ConfigError, match="--kind loss"):
        validate("ppo", odd)
    with pytest.raises(ConfigError, match=r"'first' of odd is not understood.*log_prob, old_log_prob"):
        validate("ppo", odd, kind="loss")
    with pytest.raises(ConfigError, match="no parameter 'frist'"):
        validate("ppo", odd, mapping={**mapping, "log_prob": "frist"})
    with pytest.raises(ConfigError, match="'colour' is not one of"):
        validate("ppo", odd, mapping={**mapping, "colour": "first"})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="takes no clip_range"):
        map_parameters(lambda log_prob, old_log_prob, adv: 0, "loss")
    with pytest.raises(ConfigError, match="takes no gamma"):
        map_parameters(lambda rewards, values, dones, lam: 0, "gae")
    with pytest.raises(ConfigError, match="no old_log_prob"):
        map_parameters(lambda log_prob, adv, eps: 0, "loss")
    assert detect_kind(lambda rewards, values, dones, gamma, lam: 0) == "gae"


def test_parameters_with_a_default_are_left_alone() -> None:
    def loss(logp, old_logp, adv, eps, verbose=False, /):
        return right_loss(logp, old_logp, adv, eps)

    assert validate("ppo", loss)["compliant"]


def test_a_function_that_raises_is_told_with_its_error() -> None:
    def broken(logp, old_logp, adv, eps):
        raise RuntimeError("no such layer")

    with pytest.raises(ConfigError, match="calling broken failed with numpy arrays: RuntimeError: no such layer"):
        validate("ppo", broken, framework="numpy")
    with pytest.raises(ConfigError, match="no reference for"):
        validate("dqn")
