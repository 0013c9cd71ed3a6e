"""Resources and prompts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

pytest.importorskip("mcp", reason="needs the [mcp] extra")

import anyio

from gymnasium_solver.runs.reader import Run
from tests.mcp.talking import Client, make_server, read

pytestmark = pytest.mark.integration


def test_runs_and_configurations_can_be_read(runs_dir: Path, failed: Run, solved: Run) -> None:
    server = make_server(runs_dir)
    assert yaml.safe_load(read(server, "config://CartPole-v1:ppo")[0])["env_id"] == "CartPole-v1"
    assert [run["run_id"] for run in json.loads(read(server, "runs://recent")[0])] == [solved.run_id, failed.run_id]
    assert "CartPole-v1:ppo" in json.loads(read(server, "configs://all")[0])
    assert any(m["name"] == "train/loss/value" for m in json.loads(read(server, "metrics://catalogue")[0]))
    assert json.loads(read(server, "run://@last/summary")[0])["run_id"] == solved.run_id
    assert json.loads(read(server, f"run://{failed.run_id}/config")[0])["seed"] == 1
    text, _ = read(server, f"run://{failed.run_id}/diagnosis")
    assert len(re.findall("^## ", text, re.MULTILINE)) >= 5
    assert read(server, "run://@last/log")[1] is None


def test_what_cannot_be_read_says_why(runs_dir: Path, solved: Run) -> None:
    server = make_server(runs_dir)
    assert "has no report yet" in str(read(server, "run://@last/report")[1])
    assert "CartPole-v1" in str(read(server, "config://CartPol-v1:ppo")[1])


def test_prompts_name_tools_that_exist(runs_dir: Path) -> None:
    async def go() -> tuple[set[str], dict[str, str]]:
        async with Client(make_server(runs_dir)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            texts = {}
            for prompt in (await client.list_prompts()).prompts:
                given = {argument.name: "thing" for argument in prompt.arguments or []}
                texts[prompt.name] = (await client.get_prompt(prompt.name, given)).messages[0].content.text
            return tools, texts

    tools, texts = anyio.run(go)
    assert len(texts) >= 5
    for name, text in texts.items():
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text))
        assert named & tools, name
        verbs = (
            "get",
            "list",
            "start",
            "stop",
            "diagnose",
            "inspect",
            "compare",
            "apply",
            "optimize",
            "score",
            "solve",
        )
        assert {word for word in named if word.split("_")[0] in verbs} <= tools, name
        assert "thing" in text
