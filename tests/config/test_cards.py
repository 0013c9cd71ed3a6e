"""The cards: what each algorithm declares, and what is refused in one that is not whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from gymnasium_solver.config import cards
from gymnasium_solver.config.cards import Card, all_cards, card_of, names, register
from gymnasium_solver.config.fixed import fixed_fields
from gymnasium_solver.config.on_policy import OnPolicyConfig
from gymnasium_solver.errors import ConfigError

DOCS = Path(__file__).parent.parent.parent / "docs"


class MineConfig(OnPolicyConfig):
    algo_id: Literal["mine"] = "mine"


def mine(**parts: Any) -> Card:
    return replace(card_of("a2c"), algo_id="mine", config=MineConfig, order=100, **parts)


@pytest.fixture(autouse=True)
def _registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_cards", dict(cards._loaded()))


def refusal(card: Card) -> str:
    with pytest.raises(ConfigError) as caught:
        register(card)
    assert card.algo_id not in names() or card.algo_id in ("a2c", "ppo")
    return str(caught.value)


def test_all_cards_are_whole_and_in_their_order() -> None:
    assert names() == ("ppo", "a2c", "reinforce", "dqn", "ddpg", "td3", "sac", "q_learning", "sarsa")
    for card in all_cards():
        assert register(card) is card


def test_a_registered_card_is_found() -> None:
    register(mine())
    assert names()[-1] == "mine"
    assert card_of("mine").config(env_id="Any-v0").algo_id == "mine"


@pytest.mark.parametrize(
    "part", ["title", "family", "config", "make", "feed", "actions", "instead", "defaults", "usual", "search", "probe"]
)
def test_a_card_that_lacks_a_part(part: str) -> None:
    message = refusal(replace(mine(), **{part: None}))
    assert message.startswith(f"card of 'mine' lacks {part}; give it ")


def test_a_card_that_does_not_fit_together() -> None:
    assert refusal(replace(mine(), algo_id="")).startswith("card without algo_id")
    assert "lacks box in actions and in instead" in refusal(mine(actions=("discrete", "multi_discrete")))
    assert "make 'train' is unknown" in refusal(mine(make="train"))
    assert "feed 'stream' is unknown" in refusal(mine(feed="stream"))
    assert 'algo_id: Literal["other"] = "other"' in refusal(replace(mine(), algo_id="other"))
    assert "there is an algorithm of that name" in refusal(replace(card_of("a2c"), title="another"))


def test_an_unknown_algorithm_names_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"algo_id: 'pp0' is not an algorithm; choose from ppo, .*; did you mean 'ppo'"
    ):
        card_of("pp0")


@pytest.mark.parametrize("path", ["no.such.module:CARD", "gymnasium_solver.config.cards.ppo:NONE", "pathlib:Path"])
def test_cards_that_cannot_be_imported(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_cards", {})
    monkeypatch.setenv("GSOLVE_CARDS", path)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"GSOLVE_CARDS: .* write module:CARD"):
            names()


@pytest.mark.parametrize("card", all_cards(), ids=lambda card: card.algo_id)
def test_what_a_card_speaks_of_exists(card: Card) -> None:
    derived = {"width", "rollout", "minibatch", "updates", "epsilon_late", "learning_starts_share", "target_share"}
    assert {name.partition(".")[0] for name in card.search} <= card.config.model_fields.keys()
    assert card.probe.keys() <= card.config.model_fields.keys()
    assert card.usual.keys() - derived - {"gae_lambda", "vf_coef"} <= card.config.model_fields.keys()


def test_the_table_in_the_docs_is_that_of_the_cards() -> None:
    words = {"discrete": "discrete", "multi_discrete": "multi-discrete", "box": "continuous"}
    rows = [
        f"| `{card.algo_id}` | {card.title} | {card.family.replace('_', '-')} "
        f"| {', '.join(words[kind] for kind in card.actions)} |"
        for card in all_cards()
    ]
    text = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    table = text.split("<!-- algorithms:begin -->\n")[1].split("<!-- algorithms:end -->")[0].splitlines()
    assert table[2:] == rows


def test_what_is_fixed_in_mid_run() -> None:
    tables = {"initial_value"}
    everywhere = {"env_id", "algo_id", "seed", "env_kwargs", "env_wrappers", "max_episode_steps", "frame_skip"}
    everywhere |= {"frame_stack", "rescale_actions", "normalize_obs", "normalize_reward", "engine", "vectorization"}
    everywhere |= {"n_envs", "n_steps", "bonus", "bonus_bits"}
    networks = {"network", "hidden_dims", "activation", "optimizer"}
    on_policy = {"shared_network", "log_std_init", "ortho_init", "use_sde"}
    replay = {"buffer_size", "prioritized_replay", "priority_alpha", "priority_eps", "layer_norm"}
    own = {
        **dict.fromkeys(("ppo", "a2c", "reinforce"), networks | on_policy),
        "dqn": networks | replay | {"dueling"},
        **dict.fromkeys(("ddpg", "td3"), networks | replay | {"n_critics"}),
        "sac": networks | replay | {"n_critics", "use_sde", "log_std_init", "ent_coef", "ent_coef_init"},
        **dict.fromkeys(("q_learning", "sarsa"), tables),
    }
    for card in all_cards():
        assert fixed_fields(card.config).keys() == everywhere | own[card.algo_id], card.algo_id
