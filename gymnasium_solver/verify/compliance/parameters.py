"""Which parameter of a user's function means what, by the names that people give them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.errors import ConfigError

# Written without underscores; the prefixes b_, mb_ and batch_ and a trailing _t are taken off before the look-up.
ALIASES: dict[str, dict[str, str]] = {
    "loss": {
        "log_prob": "logprob logprobs logp logps logpi newlogprob newlogprobs newlogp logpnew logprobnew logprobsnew "
        "currentlogprob currentlogprobs currlogprob currlogprobs actionlogprob actionlogprobs lp newlp pilogp",
        "old_log_prob": "oldlogprob oldlogprobs oldlogp oldlogps logpold logprobold logprobsold oldlogpi logpiold "
        "prevlogprob prevlogprobs behaviorlogprob behaviourlogprob behaviorlogprobs oldactionlogprob "
        "oldactionlogprobs oldlp samplelogprob fixedlogprob fixedlogprobs",
        "ratio": "ratio ratios probratio probratios importanceratio rho",
        "log_ratio": "logratio logratios",
        "advantages": "advantages advantage adv advs gae a",
        "clip_range": "cliprange clip clipeps clipepsilon clipcoef clipparam clipratio eps epsilon epsclip eclip "
        "ppoclip clipratioeps",
        "values": "values value newvalues newvalue v vpred vpreds valuepred valuepreds valuespred newv currentvalues",
        "old_values": "oldvalues oldvalue valuesold valueold oldvpred oldvpreds oldvaluepreds oldv prevvalues",
        "returns": "returns return ret rets targets target valuetargets valuetarget vtarget vtargets targetvalues",
        "entropy": "entropy entropies ent entropybonus",
        "vf_coef": "vfcoef valuecoef valuelosscoef vflosscoef vfcoeff valuecoeff criticcoef vcoef c1",
        "ent_coef": "entcoef entropycoef entropycoeff entcoeff entropyweight entropybeta c2",
        "clip_range_vf": "cliprangevf cliprangevalue clipvf vfclip vfcliprange valueclip vfclipparam clipvaluerange",
        "weight": "weight weights mask masks valid lossmask",
    },
    "gae": {
        "rewards": "rewards reward rews rew r",
        "values": "values value vals v vpreds valuepreds valuepred",
        "next_values": "nextvalues nextvals vtp1 valuesnext nextv",
        "last_value": "lastvalue lastvalues nextvalue lastval bootstrapvalue bootstrap finalvalue vlast lastv",
        "dones": "dones done d terminals terminal",
        "masks": "masks mask notdones notdone nonterminals nonterminal continues",
        "episode_starts": "episodestarts episodestart starts isfirst firsts",
        "terminated": "terminated terminateds terminations terms term",
        "truncated": "truncated truncateds truncations truncs trunc timeouts",
        "last_done": "nextdone lastdone nextdones lastdones nextterminal lastterminal",
        "discounts": "discounts discountt",
        "gamma": "gamma discount discountfactor g",
        "gae_lambda": "gaelambda lambda lam lamb lambd lmbda lamda gaelam gaetau tau",
    },
}
# Each line: at least one of these.
NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "loss": (("log_prob", "ratio", "log_ratio"), ("advantages", "returns"), ("clip_range",)),
    "gae": (
        ("rewards",),
        ("values",),
        ("dones", "masks", "episode_starts", "terminated", "discounts"),
        ("gamma", "discounts"),
        ("gae_lambda",),
    ),
}
_LOOKUP = {
    kind: {alias: ours for ours, names in table.items() for alias in names.split()} for kind, table in ALIASES.items()
}


def meaning_of(name: str, kind: str) -> str | None:
    bare = name.lower().strip("_")
    candidates = list(dict.fromkeys([bare, *(bare.removeprefix(prefix) for prefix in ("batch_", "mb_", "b_"))]))
    candidates += [candidate.removesuffix("_t") for candidate in candidates]
    for candidate in candidates:
        if candidate in ALIASES[kind]:
            return candidate
        if (ours := _LOOKUP[kind].get(candidate.replace("_", ""))) is not None:
            return ours
    return None


def detect_kind(function: Callable[..., Any], mapping: Mapping[str, str] = {}) -> str:
    """A function of rewards and values estimates advantages; one of log-probabilities (or ratios) is a loss."""
    names = [name for name in _parameters(function) if name not in mapping.values()]
    loss = {meaning_of(name, "loss") for name in names} | set(mapping)
    gae = {meaning_of(name, "gae") for name in names} | set(mapping)
    is_loss = bool(loss & {"log_prob", "old_log_prob", "ratio", "log_ratio"})
    is_gae = "rewards" in gae
    if is_loss == is_gae:
        raise ConfigError(
            f"validate: cannot tell whether {_name(function)}({', '.join(_parameters(function))}) is a loss or a GAE "
            "function; say it by --kind loss or --kind gae, and what its parameters are by --map (e.g. --map "
            "rewards=my_name)"
        )
    return "loss" if is_loss else "gae"


def map_parameters(function: Callable[..., Any], kind: str, mapping: Mapping[str, str] = {}) -> dict[str, str]:
    """Our name → the function's, for every parameter that has a meaning; ConfigError where a needed one is missing."""
    parameters = _parameters(function)
    for ours, theirs in mapping.items():
        if ours not in ALIASES[kind]:
            raise ConfigError(f"validate: --map {ours}={theirs}: {ours!r} is none of {', '.join(ALIASES[kind])}")
        if theirs not in parameters:
            raise ConfigError(
                f"validate: --map {ours}={theirs}: {_name(function)} has no parameter {theirs!r}; it has "
                f"{', '.join(parameters)}"
            )
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
                f"validate: parameter {name!r} of {_name(function)} {reason}; say what it is by --map OURS={name}, "
                f"where OURS is one of {', '.join(ALIASES[kind])}"
            )
    for choices in NEEDED[kind]:
        if not any(choice in found for choice in choices):
            raise ConfigError(
                f"validate: {_name(function)}({', '.join(parameters)}) takes no {' or '.join(choices)}; name the "
                f"parameter so, or say which it is by --map {choices[0]}=THEIRS"
            )
    if kind == "loss" and "log_prob" in found and "old_log_prob" not in found:
        raise ConfigError(
            f"validate: {_name(function)} takes log_prob but no old_log_prob; say which it is by --map "
            "old_log_prob=THEIRS"
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
