"""Agent definitions and guides name only what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("mcp", reason="needs the [mcp] extra")

import anyio

from tests.mcp.talking import Client, make_server

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
AGENTS = sorted((ROOT / ".claude" / "agents").glob("*.md"))
PREFIX = "mcp__gymnasium-solver__"
PLUGIN_PREFIX = "mcp__plugin_gymnasium-solver_gymnasium-solver__"
SECTIONS = ("Run summary", "Key metrics", "Diagnosed bottlenecks", "Recommendations", "Next steps")
# Words with an underscore that are arguments or config fields, not tools.
OTHER = {
    *(
        "wait_seconds",
        "from_step",
        "to_step",
        "max_env_steps",
        "batch_size",
        "n_envs",
        "n_steps",
        "ent_coef",
        "vf_coef",
    ),
    *("target_kl", "run_id", "job_id", "config_id", "policy_lr", "ep_rew_mean", "env_steps", "allow_host"),
}


@pytest.fixture(scope="module")
def only_read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """Of each tool."""

    async def go() -> dict[str, bool]:
        async with Client(make_server(tmp_path_factory.mktemp("runs"))) as client:
            return {tool.name: tool.annotations.read_only_hint for tool in (await client.list_tools()).tools}

    return anyio.run(go)


@pytest.fixture
def tools(only_read: dict[str, bool]) -> set[str]:
    return set(only_read)


def parts(path: Path) -> tuple[dict[str, Any], str]:
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


def named(text: str) -> set[str]:
    """Tools that a text names in code marks."""
    marked = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return {word for mark in marked for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", mark)} - OTHER


def test_all_five_are_there() -> None:
    assert {path.stem for path in AGENTS} == {
        *("training-optimizer", "run-debugger", "training-expert", "ppo-specialist", "trainer"),
    }


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_an_agent_may_use_what_it_names_and_all_of_it_exists(path: Path, tools: set[str]) -> None:
    front, body = parts(path)
    assert front["name"] == path.stem and len(front["description"]) > 40
    allowed = {tool.removeprefix(PREFIX) for tool in front["tools"].split(", ") if tool.startswith(PREFIX)}
    assert allowed <= tools
    assert named(body) <= tools, named(body) - tools
    assert named(body) <= allowed | {"apply_and_verify"}, "the expert names what it does not start"
    assert "diagnose_run" in named(body)
    places = [body.index(f"**{section}**") for section in SECTIONS]
    assert places == sorted(places)
    assert len(body.splitlines()) < 60


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_the_plugin_has_the_same_agents_that_may_do_no_more(path: Path, only_read: dict[str, bool]) -> None:
    front, body = parts(path)
    there, same = parts(ROOT / "plugin" / "agents" / path.name)
    allowed = {tool.removeprefix(PREFIX) for tool in front.pop("tools").split(", ")}
    denied = set(there.pop("disallowedTools").split(", "))
    assert (there, same) == (front, body)
    acting = {name for name, is_reading in only_read.items() if not is_reading}
    assert denied == {"Bash", "Write", "Edit", "NotebookEdit"} | {PLUGIN_PREFIX + name for name in acting - allowed}
    assert path.stem != "training-expert" or not acting & allowed, "it starts nothing"


def test_the_plugin_starts_the_server() -> None:
    server = json.loads((ROOT / "plugin" / ".mcp.json").read_text())["mcpServers"]["gymnasium-solver"]
    assert (server["command"], server["args"]) == ("gsolve", ["mcp"])
    assert json.loads((ROOT / "plugin" / ".claude-plugin" / "plugin.json").read_text())["name"] == "gymnasium-solver"


@pytest.mark.parametrize("name", ["AGENTS.md", "docs/mcp.md"])
def test_guides_name_tools_that_exist(name: str, tools: set[str]) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert named(text) <= tools, named(text) - tools
    assert "@AGENTS.md" in (ROOT / "CLAUDE.md").read_text()


def test_the_guide_to_the_server_names_every_tool(tools: set[str]) -> None:
    assert tools <= named((ROOT / "docs" / "mcp.md").read_text(encoding="utf-8"))
