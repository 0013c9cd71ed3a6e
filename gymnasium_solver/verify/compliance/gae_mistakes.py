"""Generalised advantage estimation step by step, each step right or wrong in known ways."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.verify.compliance.mistakes import SIGN_MEASURED, Mistake
from gymnasium_solver.verify.compliance.samples import Rollout

Array = np.ndarray
Steps = dict[str, str]


def advantages(steps: Steps, rollout: Rollout) -> Array:
    """The estimate with some steps done otherwise. [T, N]"""
    gamma, lambda_ = rollout.gamma, rollout.gae_lambda
    rewards = rollout.rewards
    if steps.get("reward") == "next":
        rewards = np.concatenate([rewards[1:], np.zeros_like(rewards[:1])])
    ended = {name: _moved(steps.get("index", ""), getattr(rollout, name)) for name in ("terminated", "done")}
    bootstraps = _going(steps.get("bootstrap", ""), ended, "terminated")
    continues = _going(steps.get("trace", ""), ended, "done")
    discount = {"": gamma, "none": 1.0, "lambda": lambda_}[steps.get("discount", "")]
    decay = {"": gamma * lambda_, "gamma": gamma, "lambda": lambda_, "none": 1.0, "zero": 0.0}[steps.get("decay", "")]
    delta = rewards + discount * _next_values(steps.get("next value", ""), rollout) * bootstraps
    delta = delta - {"": rollout.values, "missing": 0.0}[steps.get("baseline", "")]
    forwards = steps.get("direction") == "forwards"
    result, carry = np.zeros_like(delta), np.zeros(delta.shape[1])
    for t in range(len(delta)) if forwards else reversed(range(len(delta))):
        carry = delta[t] + decay * continues[t] * carry
        result[t] = carry
    match steps.get("output", ""):
        case "returns":
            return result + rollout.values
        case "negated":
            return -result
        case "standardised":
            return (result - result.mean()) / (result.std() + 1e-8)
        case "standardised, ddof 1":
            return (result - result.mean()) / (result.std(ddof=1) + 1e-8)
        case _:
            return result


def _moved(index: str, flags: Array) -> Array:
    """Flags of the next or of the previous row; what stands at the edge is a matter of how it was written."""
    first, last = flags[:1], flags[-1:]
    return {
        "": lambda: flags,
        "next, then kept": lambda: np.concatenate([flags[1:], last]),
        "next, then none": lambda: np.concatenate([flags[1:], np.zeros_like(last)]),
        "next, then ended": lambda: np.concatenate([flags[1:], np.ones_like(last)]),
        "previous": lambda: np.concatenate([np.zeros_like(first), flags[:-1]]),
        "previous, around": lambda: np.concatenate([last, flags[:-1]]),
        "last row open": lambda: np.concatenate([flags[:-1], np.zeros_like(last)]),
    }[index]()


def _going(kind: str, ended: dict[str, Array], right: str) -> Array:
    return {
        "": lambda: 1 - ended[right],
        "none": lambda: np.ones_like(ended[right]),
        "inverted": lambda: ended[right],
        "done": lambda: 1 - ended["done"],
        "terminated": lambda: 1 - ended["terminated"],
    }[kind]()


def _next_values(kind: str, rollout: Rollout) -> Array:
    following = rollout.next_values.copy()
    if kind == "same row":
        return rollout.values
    if kind == "last everywhere":
        following[:] = rollout.last_value
    elif kind == "last is zero":
        following[-1] = 0
    elif kind == "last is its own":
        following[-1] = rollout.values[-1]
    return following


_OFF_BY_ONE = "off by one: whether row t ended is read from {} (dones[t] says that the step taken in row t ended it)"
_ALIGN = "use the flag of the row whose reward it came with: dones[t] beside rewards[t]"

MISTAKES = (
    Mistake(
        "normalised-inside",
        {"output": "standardised"},
        "normalises the advantages itself, over the whole rollout",
        "right if minibatches are not normalised again; returns have to be made from advantages before that",
        harmless=True,
    ),
    Mistake(
        "normalised-inside",
        {"output": "standardised, ddof 1"},
        "normalises the advantages itself, over the whole rollout (ddof 1)",
        "right if minibatches are not normalised again; returns have to be made from advantages before that",
        harmless=True,
    ),
    Mistake(
        "dones-not-masked",
        {"bootstrap": "none", "trace": "none"},
        "dones are not masked: values and advantages leak from one episode into the one before",
        "multiply both the successor's value and the carried advantage by (1 - done)",
        measured="in the fault benchmark PPO that ignores dones learns nothing on CartPole (-0.03 of 1.00)",
    ),
    Mistake(
        "trace-not-cut",
        {"trace": "none"},
        "the carried advantage is not cut where an episode ends: it leaks into the one before",
        "multiply gamma * lambda * carry by (1 - done)",
    ),
    Mistake(
        "bootstrap-not-masked",
        {"bootstrap": "none"},
        "a terminated step bootstraps: the value of the next episode's start is added",
        "multiply the successor's value by (1 - done) in the temporal difference",
    ),
    Mistake(
        "mask-inverted",
        {"bootstrap": "inverted", "trace": "inverted"},
        "the mask is inverted: it multiplies by done, not by (1 - done)",
        "use 1 - done, or rename what is passed",
    ),
    Mistake("done-index", {"index": "next, then none"}, _OFF_BY_ONE.format("dones[t+1]"), _ALIGN),
    Mistake("done-index", {"index": "next, then kept"}, _OFF_BY_ONE.format("dones[t+1]"), _ALIGN),
    Mistake("done-index", {"index": "next, then ended"}, _OFF_BY_ONE.format("dones[t+1]"), _ALIGN),
    Mistake("done-index", {"index": "previous"}, _OFF_BY_ONE.format("dones[t-1]"), _ALIGN),
    Mistake("done-index", {"index": "previous, around"}, _OFF_BY_ONE.format("dones[t-1]"), _ALIGN),
    Mistake(
        "last-row-not-masked",
        {"index": "last row open"},
        "the ending of the last row is not looked at: it bootstraps always",
        "mask the last row by its own done as all others",
    ),
    Mistake(
        "truncation-as-termination",
        {"bootstrap": "done"},
        "a truncated step does not bootstrap: a time limit is taken for the end of the world",
        "mask the successor's value by terminated only, and the carried advantage by terminated or truncated",
        measured="the fault benchmark found it harmless on Pendulum (1.00 of 1.00); it biases values near time limits",
    ),
    Mistake(
        "trace-not-cut-at-truncation",
        {"trace": "terminated"},
        "the carried advantage is not cut at a truncation: it leaks into the episode before",
        "cut it where terminated or truncated",
    ),
    Mistake(
        "lambda-missing",
        {"decay": "gamma"},
        "lambda is missing: the carried advantage decays by gamma alone, as with lambda = 1",
        "carry = delta + gamma * lambda * (1 - done) * carry",
    ),
    Mistake(
        "gamma-missing-in-trace",
        {"decay": "lambda"},
        "gamma is missing where the advantage is carried: it decays by lambda alone",
        "carry = delta + gamma * lambda * (1 - done) * carry",
    ),
    Mistake(
        "trace-missing",
        {"decay": "zero"},
        "nothing is carried: one-step errors only, as with lambda = 0",
        "carry = delta + gamma * lambda * (1 - done) * carry",
        measured="in the fault benchmark lambda = 0 brings CartPole to 0.69 ± 0.29 of 1.00",
    ),
    Mistake(
        "gamma-missing-in-bootstrap",
        {"discount": "none"},
        "the successor's value is not discounted",
        "delta = reward + gamma * next_value * (1 - done) - value",
    ),
    Mistake(
        "gamma-lambda-swapped",
        {"discount": "lambda"},
        "gamma and lambda are swapped",
        "gamma discounts the successor's value; lambda appears in the carry only",
    ),
    Mistake(
        "value-not-subtracted",
        {"baseline": "missing"},
        "the value of the row itself is not subtracted",
        "delta = reward + gamma * next_value * (1 - done) - value",
    ),
    Mistake(
        "successor-is-own-value",
        {"next value": "same row"},
        "the value of row t stands where that of row t+1 belongs",
        "delta = rewards[t] + gamma * values[t+1] * (1 - done) - values[t]",
    ),
    Mistake(
        "last-value-everywhere",
        {"next value": "last everywhere"},
        "every row bootstraps from the value after the last row",
        "use values[t+1], and the last value for the last row only",
    ),
    Mistake(
        "last-value-ignored",
        {"next value": "last is zero"},
        "the last row does not bootstrap: the value after the rollout is taken for 0",
        "use the value of the observation after the last row, unless it terminated",
    ),
    Mistake(
        "last-value-ignored",
        {"next value": "last is its own"},
        "the last row bootstraps from its own value",
        "use the value of the observation after the last row, unless it terminated",
    ),
    Mistake(
        "runs-forwards",
        {"direction": "forwards"},
        "runs forwards in time: an advantage is made of what came before",
        "run from the last row to the first",
    ),
    Mistake(
        "rewards-shifted",
        {"reward": "next"},
        "the reward of row t+1 is used in row t",
        "use rewards[t], what the action of row t brought",
    ),
    Mistake(
        "advantage-sign",
        {"output": "negated"},
        "the sign is flipped",
        "delta = reward + gamma * next_value * (1 - done) - value",
        measured=SIGN_MEASURED,
    ),
    Mistake(
        "returns-for-advantages",
        {"output": "returns"},
        "returns come out where advantages belong: the value was added again",
        "return advantages first, then returns = advantages + values",
    ),
)
