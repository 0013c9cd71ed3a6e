"""The cards of all algorithms: every module of this folder that has a `CARD`, those that GSOLVE_CARDS names
(`module:CARD`, separated by commas; trainings in other processes know them too), and what was registered."""

from __future__ import annotations

import os
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

from gymnasium_solver import trust
from gymnasium_solver.config.cards.card import ACTION_KINDS, ActionKind, Around, Card, Look, Spaces
from gymnasium_solver.config.cards.serving import require_served
from gymnasium_solver.config.explaining import near
from gymnasium_solver.errors import ConfigError

__all__ = [
    "Around", "Card", "Look", "Spaces", "all_cards", "card_of", "default_algorithm", "find_card", "names", "register",
    "require_served",
]  # fmt: skip

_FEEDS = ("rollout", "replay")
_PARTS = {
    "title": "say what it is in one sentence",
    "family": "on_policy, replay or tabular, or a word of your own",
    "config": "a subclass of OnPolicyConfig, OffPolicyConfig or TabularConfig",
    "make": 'the function that makes it, as "module:function"',
    "feed": 'rollout, replay, or the factory of one, as "module:factory"',
    "actions": f"the kinds of actions that it serves, of {', '.join(ACTION_KINDS)}",
    "instead": "what to use for each kind of actions that it does not serve",
    "defaults": "a function of a Look that returns fields for an environment without a file",
    "usual": "the range of each setting that is usual, such as {'policy_lr': (1e-5, 1e-2)}",
    "search": "what a sweep tunes, such as {'policy_lr': Around(10)}",
    "probe": "the settings that solve the probe environments within seconds",
}
_cards: dict[str, Card] = {}


def card_of(algo_id: object) -> Card:
    card = find_card(algo_id)
    if card is None:
        raise ConfigError(
            f"algo_id: {algo_id!r} is not an algorithm; choose from {', '.join(names())}{near(str(algo_id), names())}"
        )
    return card


def find_card(algo_id: object) -> Card | None:
    return _loaded().get(algo_id) if isinstance(algo_id, str) else None


def all_cards() -> tuple[Card, ...]:
    return tuple(sorted(_loaded().values(), key=lambda card: card.order))


def names() -> tuple[str, ...]:
    return tuple(card.algo_id for card in all_cards())


def default_algorithm() -> str:
    """Where nobody says which."""
    return names()[0]


def register(card: Card) -> Card:
    """Make an algorithm known to this process; ConfigError if a part of its card is missing."""
    cards = _loaded()
    _require_whole(card)
    if cards.get(card.algo_id, card) != card:
        raise ConfigError(f"card of {card.algo_id!r}: there is an algorithm of that name; give this one another")
    cards[card.algo_id] = card
    return card


def _loaded() -> dict[str, Card]:
    if not _cards:
        for module in iter_modules(__path__):
            card = getattr(import_module(f"{__name__}.{module.name}"), "CARD", None)
            if card is not None:
                _cards[card.algo_id] = card
        try:
            for path in filter(None, map(str.strip, os.environ.get("GSOLVE_CARDS", "").split(","))):
                register(_imported(path))
        except ConfigError:  # said again by whoever asks next
            _cards.clear()
            raise
    return _cards


def _imported(path: str) -> Card:
    try:
        card = getattr(trust.load_from_variable(path, "GSOLVE_CARDS"), path.partition(":")[2])
    except (ConfigError, AttributeError) as error:
        raise ConfigError(f"GSOLVE_CARDS: {path!r} cannot be imported ({error}); write module:CARD") from None
    if not isinstance(card, Card):
        raise ConfigError(f"GSOLVE_CARDS: {path!r} is no Card; write module:CARD")
    return card


def _require_whole(card: Card) -> None:
    if not card.algo_id or ":" in card.algo_id:
        raise ConfigError(f"card without algo_id ({card.algo_id!r}); give it the name that ENV:VARIANT takes, no colon")
    for part, remedy in _PARTS.items():
        value: Any = getattr(card, part)
        if value is None or (part != "instead" and not value):
            raise ConfigError(f"card of {card.algo_id!r} lacks {part}; give it {remedy}")
    unserved = [kind for kind in get_args(ActionKind) if kind not in card.actions and kind not in card.instead]
    if unserved:
        raise ConfigError(
            f"card of {card.algo_id!r} lacks {unserved[0]} in actions and in instead; serve it, or say what to use"
        )
    for part, known in (("make", ()), ("feed", _FEEDS)):
        if ":" not in (value := getattr(card, part)) and value not in known:
            raise ConfigError(f"card of {card.algo_id!r}: {part} {value!r} is unknown; give it {_PARTS[part]}")
    if card.config.model_fields["algo_id"].default != card.algo_id:
        raise ConfigError(
            f"card of {card.algo_id!r}: its config class is of another algorithm; declare "
            f'algo_id: Literal["{card.algo_id}"] = "{card.algo_id}" there'
        )
    if not {"max_env_steps", "max_updates"} & card.config.model_fields.keys():
        raise ConfigError(f"card of {card.algo_id!r}: its config has no budget; add max_env_steps or max_updates to it")
