"""The page in a real browser: it stands alone, fits a phone and prints."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from studies.report.page import html_page
from tests.studies.made_up import findings, further, task

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to render the page")

ARMS = [further(f"arm_{number}", (1.0, 0.5, 0.2), (1.0, 0.6, 0.1)) for number in range(9)]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    text, _ = html_page(findings(task(*ARMS, further("lost", "diverged", "diverged"))))
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_is_asked_of_the_network_and_nothing_is_complained_about(
    browser: Any, page: Path
) -> None:
    tab = browser.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(page.as_uri())
    assert asked == [page.as_uri()]
    assert complaints == []
    assert tab.inner_text("h1") == "Which arm reaches further?"
    pictures = tab.locator("figure svg")
    assert pictures.count() == 4
    assert all(pictures.nth(number).bounding_box()["height"] > 100 for number in range(4))
    tab.close()


@pytest.mark.parametrize("width", [360, 1100])
def test_the_page_is_never_wider_than_its_window(browser: Any, page: Path, width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 800})
    tab.goto(page.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()


def test_the_page_prints(browser: Any, page: Path) -> None:
    tab = browser.new_page()
    tab.goto(page.as_uri())
    assert tab.pdf().startswith(b"%PDF")
    tab.close()


def test_ids_are_unique_on_the_page(browser: Any, page: Path) -> None:
    tab = browser.new_page()
    tab.goto(page.as_uri())
    twice = tab.evaluate(
        "(() => { const ids = [...document.querySelectorAll('[id]')].map(one => one.id);"
        "return ids.filter((id, at) => ids.indexOf(id) !== at); })()"
    )
    assert twice == []
    tab.close()
