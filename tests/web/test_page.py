"""The page in a real browser, clicked through."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")

from playwright.sync_api import Route, expect

from gymnasium_solver.plain import plain
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import write_report
from gymnasium_solver.verify.comparison.document import compare_runs
from gymnasium_solver.web.settings import Settings
from tests.web.conftest import real_server
from tests.web.page_runs import ATTACK, RUNS, SWEEP, Open, Site, experiment, go, row, rows, running

pytestmark = pytest.mark.integration

pytest_plugins = ["tests.web.browser"]


def test_from_the_list_to_a_change_worth_copying(open_page: Open, site: Site) -> None:
    good, bad = site.ids["good"], site.ids["bad"]
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    expect(rows(page)).to_have_count(RUNS)
    expect(row(page, good).locator(".badge")).to_have_text("solved")
    expect(row(page, good).locator("svg.sparkline")).to_be_visible()

    page.get_by_label("Search runs").fill(bad)
    expect(rows(page)).to_have_count(1)
    assert f"search={bad}" in page.url
    row(page, bad).locator("a.open").click()
    expect(page.locator("h1")).to_have_text("CartPole-v1 · ppo")
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    expect(page.get_by_text("the learning rate is too low").first).to_be_visible()

    page.get_by_role("link", name="Diagnosis").click()
    headings = page.locator(".diagnosis > section > h2")
    expect(headings.nth(4)).to_be_visible()
    sections = ["Run summary", "Key metrics", "Diagnosed bottlenecks", "Recommendations", "Next steps"]
    assert headings.all_inner_texts()[:5] == sections
    page.get_by_role("button", name="Copy command").first.click()
    expect(page.locator("#announcer")).to_have_text("command copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("gsolve train CartPole-v1:ppo ") and "--set 'policy_lr=" in copied
    page.get_by_role("button", name="Copy YAML").first.click()
    expect(page.locator("#announcer")).to_have_text("YAML copied")
    assert "policy_lr:" in page.evaluate("navigator.clipboard.readText()")
    page.reload()
    expect(headings.nth(4)).to_have_text("Next steps")  # a reload keeps the place


def test_a_report_has_its_pictures(open_page: Open, site: Site) -> None:
    run = site.runs_dir / site.ids["good2"]
    write_report(run)
    try:
        page = open_page()
        go(page, f"#/runs/{run.name}/report")
        expect(page.locator("article.report img").first).to_be_visible()
        page.wait_for_function("[...document.querySelectorAll('article.report img')].every(x => x.naturalWidth > 900)")
    finally:
        (run / "report.md").unlink()
        shutil.rmtree(run / "plots")


def test_sort_and_filter_are_the_servers_and_stay_in_the_address(open_page: Open, site: Site) -> None:
    page = open_page()
    page.get_by_role("button", name="Best / goal").click()
    solved = re.compile(f"{site.ids['good']}|{site.ids['good2']}")
    expect(rows(page).first).to_have_attribute("data-run", solved)
    page.get_by_role("button", name="Best / goal").click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text(re.compile("Best / goal"))
    assert "sort=best_reward" in page.url
    page.get_by_label("Status").select_option("failed")
    expect(page.get_by_text("No runs match.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No runs match.")).to_be_visible()


def test_pages_of_many_runs(open_page: Open, site: Site, tmp_path: Path) -> None:
    for number in range(120):
        shutil.copytree(site.runs_dir / site.ids["good"], tmp_path / f"20260101-{number:06}-copy")
    with real_server(Settings(tmp_path)) as (address, _):
        page = open_page(address=address)
        expect(page.locator(".pager")).to_contain_text("1–50 of 120")
        page.get_by_role("button", name="Older").click()
        expect(page.locator(".pager")).to_contain_text("51–100 of 120")
        page.get_by_role("button", name="Older").click()
        expect(page.locator(".pager")).to_contain_text("101–120 of 120")
        expect(page.get_by_role("button", name="Older")).to_be_disabled()
        expect(rows(page)).to_have_count(20)
        page.context.close()


def test_chosen_runs_are_compared(open_page: Open, site: Site) -> None:
    page = open_page()
    for name in ("good", "good2", "bad", "bad2"):
        row(page, site.ids[name]).get_by_role("checkbox").check()
    page.get_by_role("link", name="Compare").click()
    expect(page.locator(".verdict")).to_contain_text("policy_lr")
    expect(page.get_by_role("region", name="Settings that differ")).to_contain_text("policy_lr")
    expect(page.locator(".forest svg[role=img]").first).to_be_visible()
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    expect(page.get_by_role("region", name="Runs", exact=True).locator("tbody tr")).to_have_count(4)


def test_the_history_of_a_solve(open_page: Open, site: Site) -> None:
    page = open_page("#/experiments")
    page.get_by_role("link", name="solve CartPole-v1").click()
    expect(page.locator(".verdict")).to_have_text("CartPole-v1 is solved")
    expect(page.locator(".timeline > li")).to_have_count(2)
    expect(page.locator(".timeline")).to_contain_text("follows from 1")
    expect(page.get_by_label("YAML", exact=True)).to_contain_text("policy_lr")
    page.locator(".timeline").get_by_role("link", name=site.ids["good"]).click()
    expect(page.locator(".headline .badge")).to_have_text("solved")


ENDED_EARLY = [
    *({"kind": kind, "status": "interrupted"} for kind in ("solve", "optimize", "verify")),
    *({"kind": kind, "status": "failed", "error": "the budget ended"} for kind in ("solve", "optimize", "verify")),
    {"kind": "solve", "status": "running"},  # by no process
]


@pytest.mark.parametrize("record", ENDED_EARLY, ids=lambda record: f"{record['kind']} {record['status']}")
def test_an_experiment_that_came_to_no_end(open_page: Open, site: Site, record: dict[str, Any]) -> None:
    with experiment(site.runs_dir, {**record, "asked": {"source": "CartPole-v1:ppo"}}) as name:
        trial = {"label": "change", "seed": 3, "path": f"runs/{site.ids['good']}", "best_reward": 499.0}
        (site.runs_dir / name / "trials.jsonl").write_text(json.dumps(trial) + "\n")
        page = open_page(f"#/experiments/{name}")
        status = "crashed" if record["status"] == "running" else record["status"]
        expect(page.locator(".title .badge")).to_have_text(status)
        expect(page.get_by_role("region", name="Finished trainings")).to_contain_text("499")
        if "error" in record:
            expect(page.locator(".notice.bad")).to_have_text("the budget ended")


def test_the_history_of_a_tested_change(open_page: Open, site: Site) -> None:
    runs = [Run(site.runs_dir / site.ids[name]) for name in ("bad", "bad2", "good", "good2")]
    comparison = plain(compare_runs(runs))
    record = {
        **{"kind": "verify", "status": "completed", "source": "CartPole-v1:ppo", "set": {"policy_lr": 0.001}},
        **{"asked": {"source": "CartPole-v1:ppo"}, "trainings": {"as it is": 2, "change": 2}, "comparison": comparison},
        **{"verdict": comparison["verdict"]["text"], "duration_s": 6.0},
    }
    with experiment(site.runs_dir, record) as name:
        page = open_page(f"#/experiments/{name}")
        expect(page.locator("h1")).to_have_text("Verify: CartPole-v1:ppo")
        expect(page.locator(".verdict")).to_have_text(record["verdict"])
        expect(page.locator(".facts").first).to_contain_text("Trainings4")
        expect(page.get_by_role("region", name="The change")).to_contain_text("policy_lr0.001")
        expect(page.locator(".forest svg[role=img]").first).to_be_visible()
        go(page, "#/experiments")
        expect(page.get_by_role("region", name="Experiments").locator("tr", has_text=name)).not_to_contain_text("NaN")
        go(page, f"#/?group={name}")
        expect(page.get_by_role("link", name="Its history")).to_be_visible()


def test_the_history_of_a_sweep(open_page: Open, site: Site) -> None:
    pytest.importorskip("optuna", reason="the [search] extra is not installed")
    page = open_page("#/experiments")
    page.get_by_role("link", name="sweep CartPole-v1").click()
    expect(page.locator("h1")).to_have_text("Sweep: CartPole-v1")
    expect(page.locator(".title .badge")).to_have_text("completed")
    expect(page.locator(".verdict")).to_contain_text("Best: trial 7")
    best = page.get_by_role("region", name="Best trial")
    expect(best).to_contain_text("20,000 (2 of 2 seeds solved)")
    expect(best.get_by_label("YAML", exact=True)).to_contain_text("policy_lr: 0.002")
    expect(page.get_by_role("region", name="Test").locator(".badge")).to_have_text("better")
    expect(page.get_by_role("region", name="Importance")).to_contain_text("policy_lr9")
    trials = page.get_by_role("region", name="Trials").last.locator("tbody tr")
    expect(trials).to_have_count(22)
    expect(trials.nth(5)).to_contain_text("pruned")
    expect(trials.nth(7).locator(".badge")).to_have_text(["complete", "best"])
    expect(trials.nth(20)).to_contain_text(ATTACK)  # as text
    trials.nth(7).get_by_role("link", name="2").click()
    expect(page.locator("h1")).to_have_text("CartPole-v1 · ppo")
    assert site.ids["good2"] in page.url
    go(page, f"#/?group={SWEEP}")
    page.get_by_role("link", name="Its history").click()
    expect(page.locator("h1")).to_have_text("Sweep: CartPole-v1")


def test_zoom_asks_for_the_stretch(open_page: Open, site: Site) -> None:
    page = open_page(f"#/runs/{site.ids['good']}")
    box = page.locator(".chart.wide .nsewdrag").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    with page.expect_request(lambda asked: "/metrics?" in asked.url and "from=" in asked.url) as asked:
        page.mouse.move(box["x"] + 0.3 * box["width"], middle)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=4)
        page.mouse.up()
    start, end = (float(value) for value in re.findall(r"(?:from|to)=([\d.]+)", asked.value.url))
    assert 10_000 < start < 20_000 < end < 35_000
    page.get_by_role("button", name="Whole run").click()
    expect(page.get_by_role("button", name="Whole run")).to_be_hidden()


def test_an_episode_is_played(open_page: Open, site: Site) -> None:
    pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
    episode = {"frames": [pixel, None, pixel], "actions": [0, 1, 1], "return": 6.0, "notice": None}
    numbers = {"rewards": [1.0, 2.0, 3.0], "values": [5.0, None, 1.0]}

    def with_checkpoint(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "checkpoints": ["best"]})

    page = open_page()
    page.route("**/episode**", lambda route: route.fulfill(json=episode | numbers))
    page.route(f"**/api/runs/{site.ids['good']}", with_checkpoint)
    go(page, f"#/runs/{site.ids['good']}/replay")
    page.get_by_role("button", name="Play an episode").click()
    expect(page.locator(".player .verdict")).to_have_text("Return 6 in 3 steps")
    expect(page.locator(".now")).to_contain_text("3 of 3")
    page.get_by_role("button", name="Step back").click()
    expect(page.locator(".now")).to_contain_text("Return so far3")
    expect(page.locator(".strip")).to_have_count(3)
    page.unroute_all(behavior="ignoreErrors")


def test_training_is_started_and_stopped_only_on_purpose(open_page: Open, site: Site) -> None:
    posted: list[tuple[str, Any]] = []

    def answer(route: Route) -> None:
        if route.request.method != "POST":
            return route.fallback()
        posted.append((route.request.url.split("/api")[1], route.request.post_data_json))
        return route.fulfill(json={"run_id": site.ids["good"], "group": None, "status": "interrupted"})

    page = open_page("#/start")
    page.route("**/api/runs**", answer)
    page.route("**/api/runs/**", answer)
    page.get_by_label("Configuration").fill("CartPole-v1:ppo")
    page.get_by_label("Changes").fill("policy_lr=0.001\nhidden_dims=[32, 32]\n")
    page.get_by_role("button", name="Start training").click()
    expect(page.locator("h1")).to_have_text("CartPole-v1 · ppo")
    overrides = {"policy_lr": 0.001, "hidden_dims": [32, 32]}
    assert posted == [("/runs", {"config_id": "CartPole-v1:ppo", "overrides": overrides, "seeds": 1})]

    with running(site.runs_dir) as writer:
        go(page, f"#/runs/{writer.run_id}")
        page.get_by_role("button", name="Stop training").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert len(posted) == 1
        page.get_by_role("button", name="Stop training").click()
        with page.expect_response("**/stop"):
            page.get_by_role("dialog").get_by_role("button", name="Stop training").click()
    assert [path for path, _ in posted] == ["/runs", f"/runs/{writer.run_id}/stop"]


def test_a_server_that_only_reads_offers_no_training(open_page: Open, site: Site) -> None:
    with real_server(Settings(site.runs_dir, read_only=True)) as (address, _):
        page = open_page(address=address)
        expect(rows(page)).to_have_count(RUNS)
        expect(page.get_by_role("link", name="Train")).to_be_hidden()
        page.context.close()


def test_keys(open_page: Open) -> None:
    page = open_page()
    expect(rows(page)).to_have_count(RUNS)
    page.keyboard.press("/")
    expect(page.get_by_label("Search runs")).to_be_focused()
    page.keyboard.press("Escape")
    for key in "jjkx":
        page.keyboard.press(key)
    expect(page.locator("tr.cursor.chosen")).to_have_count(1)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next run")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator("nav a[aria-current]").last).to_have_text("Diagnosis")
    page.keyboard.press("Escape")
    expect(rows(page)).to_have_count(RUNS)
