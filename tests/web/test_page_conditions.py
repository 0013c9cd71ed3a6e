"""The page on a phone, in the dark, attacked, while runs are written and deleted, and without its server."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Literal

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")

from playwright.sync_api import Browser, Page, expect

from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.web.settings import Settings
from tests.made_runs import HEALTHY, write_run
from tests.web.conftest import real_server
from tests.web.page_runs import ATTACK, EXPERIMENT, RUNS, SWEEP, Open, Site, go, lengthen, row, rows, running

pytestmark = pytest.mark.integration

pytest_plugins = ["tests.web.browser"]
PHONE = {"width": 390, "height": 844}
TABS = ("curves", "diagnosis", "replay", "log", "config", "checkpoints", "report")
TOKEN = "a-token-of-some-length"
ACCESSIBILITY = (Path(__file__).parent / "accessibility.js").read_text()


def every_place(site: Site, run: str = "bad") -> list[str]:
    runs = ",".join(site.ids[name] for name in ("good", "good2", "bad", "bad2"))
    places = ["#/", "#/start", "#/experiments", f"#/experiments/{EXPERIMENT}", f"#/compare?runs={runs}"]
    places += [f"#/experiments/{SWEEP}"] if (site.runs_dir / SWEEP).is_dir() else []
    return [*places, *(f"#/runs/{site.ids[run]}/{tab}" for tab in TABS)]


def test_light_and_dark(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_nothing_is_wider_than_a_phone(open_page: Open, site: Site) -> None:
    page = open_page(viewport=PHONE)
    for place in every_place(site):
        go(page, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, place


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(open_page: Open, site: Site, scheme: Literal["light", "dark"]) -> None:
    page = open_page(color_scheme=scheme)
    for place in every_place(site):
        go(page, place)
        assert _ask(page, "nameless") == [], place
        assert _ask(page, "faint") == [], place
    page.evaluate("document.documentElement.style.setProperty('--muted', '#777')")
    page.evaluate("document.querySelector('#theme').replaceWith(document.createElement('button'))")
    assert _ask(page, "nameless") and _ask(page, "faint")  # the questions can be answered with yes


def _ask(page: Page, question: str) -> list[str]:
    found: list[str] = page.evaluate(f"({ACCESSIBILITY.rstrip().rstrip(';')}).{question}()")
    return found


def test_text_of_runs_is_only_ever_text(open_page: Open, site: Site) -> None:
    page = open_page()
    expect(row(page, site.ids["hostile"])).to_contain_text(ATTACK)
    for place in every_place(site, "hostile"):
        go(page, place)
        assert page.locator("main img[src='x']").count() == 0, place
    go(page, f"#/runs/{site.ids['hostile']}/curves")
    page.get_by_label("Add a curve").select_option(f"train/metrics/{ATTACK}")
    expect(page.locator(".chart", has_text="img src=x").locator(".main-svg").first).to_be_visible()
    go(page, f"#/runs/{site.ids['hostile']}/log")
    expect(page.locator(".log")).to_contain_text(ATTACK)
    go(page, f"#/experiments/{EXPERIMENT}")
    expect(page.locator(".timeline")).to_contain_text(ATTACK)
    assert page.evaluate("window.pwned") is None


def test_html_would_be_noticed_and_still_run_no_script(browser: Browser, site: Site) -> None:
    """What the test above looks for can be found; and if text ever became HTML, the policy of the server holds."""
    page = browser.new_page()
    page.goto(site.address)
    expect(rows(page)).to_have_count(RUNS)
    page.evaluate("text => { document.querySelector('main').innerHTML = text }", ATTACK)
    expect(page.locator("main img[src='x']")).to_have_count(1)
    page.wait_for_function("document.querySelector('main img').complete")  # it has failed to load
    page.evaluate("new Promise(next => setTimeout(next))")  # and its handler has had its turn
    assert page.evaluate("window.pwned") is None
    page.close()


def test_rows_are_seen_as_they_are_written(open_page: Open, site: Site) -> None:
    with running(site.runs_dir) as writer:
        page = open_page(f"#/runs/{writer.run_id}")
        expect(page.get_by_text("No metrics yet")).to_be_visible()
        _write(writer, 1000)
        steps = page.locator(".tiles div:has(dt:text-is('Steps')) .value")
        length = page.locator(".chart", has_text="Episode length").locator(".latest")
        expect(length).to_have_text("10 steps")
        for count in (2000, 3000, 4000):
            _write(writer, count)
            expect(steps).to_have_text(f"{count:,}")
            expect(length).to_have_text(f"{count / 100:g} steps")
        writer.status("completed", solved=True)
        expect(page.locator(".headline .badge")).to_have_text("solved")


def _write(writer: RunWriter, steps: int) -> None:
    counts = {"train/cnt/env_steps": steps, "train/cnt/epochs": steps / 1000}
    writer.metrics({**counts, "train/roll/ep_rew_mean": steps / 200, "train/roll/ep_len_mean": steps / 100})
    writer.status("running", env_steps=steps, max_env_steps=50_000)


def test_new_runs_come_and_deleted_ones_are_said_to_be_gone(open_page: Open, site: Site) -> None:
    page = open_page()
    expect(rows(page)).to_have_count(RUNS)
    run = write_run(site.runs_dir, HEALTHY, seed=55)
    row(page, run.run_id).locator("a.open").click()
    expect(page.get_by_text("Reached the threshold").first).to_be_visible()
    shutil.rmtree(run.path)
    expect(page.get_by_text("it was deleted while this page was open")).to_be_visible()
    expect(page.locator(".headline")).to_be_visible()
    go(page, "#/runs/no-such-run")
    expect(page.locator(".notice.bad")).to_contain_text("there is no run")


def test_a_page_that_is_not_seen_does_not_listen_and_catches_up(open_page: Open, site: Site) -> None:
    """Browsers allow six connections to a host: tabs that all held one would keep the seventh from loading."""
    hide = "is => { Object.defineProperty(document, 'hidden', {get: () => is, configurable: true});"
    hide += " document.dispatchEvent(new Event('visibilitychange')) }"

    def wait_for(count: int) -> None:
        deadline = time.monotonic() + 20
        while state.events.listening != count and time.monotonic() < deadline:
            page.wait_for_timeout(50)
        assert state.events.listening == count

    with real_server(Settings(site.runs_dir)) as (address, state):
        page = open_page(address=address)
        expect(rows(page)).to_have_count(RUNS)
        wait_for(1)
        page.evaluate(hide, True)
        wait_for(0)
        run = write_run(site.runs_dir, HEALTHY, seed=56)
        try:
            other = open_page(address=address)  # by the time it is seen there, a page that listens has heard of it
            expect(row(other, run.run_id)).to_be_visible()
            wait_for(1)
            expect(row(page, run.run_id)).to_have_count(0)
            other.close()
            wait_for(0)
            page.evaluate(hide, False)
            expect(row(page, run.run_id)).to_be_visible()
            wait_for(1)
        finally:
            shutil.rmtree(run.path)
        expect(rows(page)).to_have_count(RUNS)


def test_a_server_that_is_gone_and_comes_back(open_page: Open) -> None:
    page = open_page()
    expect(rows(page)).to_have_count(RUNS)
    page.context.set_offline(True)
    page.get_by_label("Status").select_option("failed")
    expect(page.locator("#banner")).to_contain_text("The server does not answer")
    page.context.set_offline(False)
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.get_by_text("No runs match.")).to_be_visible()


def test_a_token_is_asked_for(open_page: Open, site: Site) -> None:
    with real_server(Settings(site.runs_dir, token=TOKEN)) as (address, _):
        page = open_page(f"#/runs/{site.ids['good']}/log", address=address)
        page.get_by_label("The token").fill("wrong")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_text("That is not the token")).to_be_visible()
        page.get_by_label("The token").fill(TOKEN)
        page.get_by_role("button", name="Continue").click()
        expect(page.locator(".log")).to_be_visible()  # the place is kept
        assert "token" not in page.url
        go(page, "#/")
        page.context.clear_cookies()
        page.get_by_label("Status").select_option("solved")
        expect(page.get_by_label("The token")).to_be_visible()
        page.context.close()


@pytest.mark.slow
def test_a_run_of_a_million_rows_is_drawn(browser: Browser, site: Site) -> None:
    run = write_run(site.runs_dir, HEALTHY, seed=99)
    try:
        lengthen(run.path / "metrics.csv", 1000)
        page = browser.new_page()
        page.goto(f"{site.address}/#/runs/{run.run_id}")
        page.locator(".headline .tiles").wait_for(timeout=60_000)
        page.locator(".plot .main-svg").first.wait_for(timeout=60_000)
        page.close()
    finally:
        shutil.rmtree(run.path)
