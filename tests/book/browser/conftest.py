"""A browser, the built site on a local port, and pages of it opened in the browser."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import browsing

# For machines that do other things as well.
PATIENCE = 90_000
expect.set_options(timeout=30_000)

# The theme's script does this on pages without sub-headings; nothing is lost by it.
KNOWN_ERRORS = ("Cannot read properties of null (reading 'classList')",)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Serve the built site on a free port of this machine."""
    with browsing.serve(site) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; without one the tests are skipped, but not in CI."""
    try:
        with browsing.start_chromium() as browser:
            yield browser
    except FileNotFoundError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


Open = Callable[[BrowserContext, str], tuple[Page, list[str]]]


@pytest.fixture(scope="session")
def open_page(address: str) -> Open:
    """Return a function that opens a page of the site, with its mathematics typeset.

    It gives the page and a list of its errors, which grows while the page is used. Requests to any
    other host are among them.
    """

    def open_page(context: BrowserContext, name: str) -> tuple[Page, list[str]]:
        errors: list[str] = []

        def note(error: str) -> None:
            if not any(known in error for known in KNOWN_ERRORS):
                errors.append(error)

        def note_request(url: str) -> None:
            if not url.startswith((address, "data:", "blob:")):
                note(f"request to {url}")

        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: note_request(request.url))
        page.on("console", lambda m: note(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: note(str(error)))
        page.on("response", lambda r: note(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.goto(f"{address}/{name}")
        page.evaluate("window.MathJax && MathJax.startup.promise")
        return page, errors

    return open_page


@pytest.fixture
def visit(browser: Browser, open_page: Open) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page for a new reader, and see that it has no errors."""
    opened = []

    def visit(
        name: str, scheme: str = "light", width: int = 1280, height: int = 900, **options: object
    ) -> Page:
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}, **options
        )
        page, errors = open_page(context, name)
        opened.append((context, errors))
        return page

    yield visit
    for context, _ in opened:
        context.close()
    assert [error for _, errors in opened for error in errors] == []
