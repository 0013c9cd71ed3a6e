"""A real browser in front of a real server: Debian's chromium, without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from gymnasium_solver.web.settings import Settings
from tests.web.conftest import real_server
from tests.web.page_runs import Open, Site, make_runs

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
expect.set_options(timeout=20_000)  # for machines that do other things too; what must be quick is measured


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium here; apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    runs_dir = tmp_path_factory.mktemp("page") / "runs"
    ids = make_runs(runs_dir)
    with real_server(Settings(runs_dir)) as (address, _):
        yield Site(address, ids, runs_dir)


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Open]:
    """Opens a place; afterwards no script may have failed and no other host may have been asked for anything."""
    troubles: list[str] = []
    contexts = []

    def open_page(place: str = "", address: str = site.address, **options: Any) -> Page:
        def look(asked: Request) -> None:
            if not asked.url.startswith((address, "data:", "blob:")):
                troubles.append(f"asked for {asked.url}")

        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", look)
        page.on("pageerror", lambda error: troubles.append(f"script failed: {error}"))
        page.on("console", lambda said: troubles.append(said.text) if "Content Security" in said.text else None)
        page.goto(f"{address}/{place}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles
