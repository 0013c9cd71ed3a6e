"""Which parameter of a user's function means what, by the names that people give them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.errors import ConfigError

# Without underscores, plural endings, the prefixes b_, mb_ and batch_, and a trailing _t: all of these are taken off.
ALIASES: dict[str, dict[str, str]] = {
    "loss": {
        "log_prob": "logprob logp logpi newlogprob newlogp logpnew logprobnew logprobsnew currentlogprob currlogprob "
        "actionlogprob lp newlp pilogp",
        "old_log_prob": "oldlogprob oldlogp logpold logprobold logprobsold oldlogpi logpiold prevlogprob "
        "behaviorlogprob behaviourlogprob oldactionlogprob oldlp samplelogprob fixedlogprob",
        "ratio": "ratio probratio importanceratio rho",
        "log_ratio": "logratio",
        "advantages": "advantage adv gae a",
        "clip_range": "cliprange clip clipep clipepsilon clipcoef clipparam clipratio clipratioep ep epsilon epsclip "
        "eclip ppoclip",
        "values": "value newvalue v vpred valuepred valuespred newv currentvalue",
        "old_values": "oldvalue valuesold valueold oldvpred oldvaluepred oldv prevvalue",
        "returns": "return ret target valuetarget vtarget targetvalue",
        "entropy": "entropy entropie ent entropybonu",
        "vf_coef": "vfcoef valuecoef valuelosscoef vflosscoef vfcoeff valuecoeff criticcoef vcoef c1",
        "ent_coef": "entcoef entropycoef entropycoeff entcoeff entropyweight entropybeta c2",
        "clip_range_vf": "cliprangevf cliprangevalue clipvf vfclip vfcliprange valueclip vfclipparam clipvaluerange",
        "weight": "weight mask valid lossmask",
    },
    "gae": {
        "rewards": "reward rew r",
        "values": "value val v vpred valuepred",
        "next_values": "nextvalues nextval vtp1 valuesnext nextv",
        "last_value": "lastvalue nextvalue lastval bootstrapvalue bootstrap finalvalue vlast lastv",
        "dones": "done d terminal",
        "masks": "mask notdone nonterminal continue",
        "episode_starts": "episodestart start isfirst first",
        "terminated": "terminated termination term",
        "truncated": "truncated truncation trunc timeout",
        "last_done": "nextdone lastdone nextterminal lastterminal",
        "discounts": "discounts discountt",
        "gamma": "gamma discount discountfactor g",
        "gae_lambda": "gaelambda lambda lam lamb lambd lmbda lamda gaelam gaetau tau",
    },
}
# Each line: at least one of these.
NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "loss": (("log_prob", "ratio", "log_ratio"), ("advantages", "returns"), ("clip_range",)),
    "gae": (
        *(("rewards",), ("values",), ("dones", "masks", "episode_starts", "terminated", "discounts")),
        *(("gamma", "discounts"), ("gae_lambda",)),
    ),
}


def meaning_of(name: str, kind: str) -> str | None:
    known = {alias: ours for ours, aliases in ALIASES[kind].items() for alias in (ours, *aliases.split())}
    bare = name.lower().strip("_")
    for short in (bare, *(bare.removeprefix(prefix) for prefix in ("batch_", "mb_", "b_"))):
        for part in (short, short.removesuffix("_t")):
            plain = part.replace("_", "")
            for candidate in (part, plain, plain.removesuffix("s")):
                if candidate in known:
                    return known[candidate]
    return None


def detect_kind(function: Callable[..., Any], mapping: Mapping[str, str] = {}) -> str:
    """A function of rewards and values estimates advantages; one of log-probabilities (or ratios) is a loss."""
    names = [name for name in _parameters(function) if name not in mapping.values()]
    loss, gae = ({meaning_of(name, kind) for name in names} | set(mapping) for kind in ("loss", "gae"))
    is_loss, is_gae = bool(loss & {"log_prob", "old_log_prob", "ratio", "log_ratio"}), "rewards" in gae
    if is_loss == is_gae:
        raise ConfigError(
            f"validate: cannot tell whether {_signature(function)} is a loss or a GAE function; say so with --kind "
            "loss or --kind gae, and name its parameters with --map (e.g. --map rewards=my_name)"
        )
    return "loss" if is_loss else "gae"


def map_parameters(function: Callable[..., Any], kind: str, mapping: Mapping[str, str] = {}) -> dict[str, str]:
    """Our name → the function's, for every parameter that has a meaning; ConfigError where a needed one is missing."""
    parameters, name_of_it, ours_are = _parameters(function), _name(function), ", ".join(ALIASES[kind])
    for ours, theirs in mapping.items():
        if ours not in ALIASES[kind]:
            raise ConfigError(f"validate: --map {ours}={theirs}: {ours!r} is not one of {ours_are}")
        if theirs not in parameters:
            has = f"{name_of_it} has no parameter {theirs!r}; it has {', '.join(parameters)}"
            raise ConfigError(f"validate: --map {ours}={theirs}: {has}")
    found = dict(mapping)
    for name, parameter in parameters.items():
        if name in mapping.values():
            continue
        meaning = meaning_of(name, kind)
        if meaning is not None and meaning not in found:
            found[meaning] = name
        elif parameter.default is inspect.Parameter.empty:
            reason = f"means {meaning}, as {found[meaning]!r} does" if meaning else "is not understood"
            raise ConfigError(
                f"validate: parameter {name!r} of {name_of_it} {reason}; say what it is with --map OURS={name}; "
                f"OURS is one of {ours_are}"
            )
    needed = [*NEEDED[kind], *[("old_log_prob",)] * (kind == "loss" and "log_prob" in found)]
    for choices in needed:
        if not any(choice in found for choice in choices):
            raise ConfigError(
                f"validate: {_signature(function)} takes no {' or '.join(choices)}; name a parameter like that, "
                f"or say which it is with --map {choices[0]}=THEIRS"
            )
    return found


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"validate: the parameters of {_name(function)} cannot be read ({error})") from error
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: parameter for name, parameter in signature.parameters.items() if parameter.kind not in variadic}


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _signature(function: Callable[..., Any]) -> str:
    return f"{_name(function)}({', '.join(_parameters(function))})"
