"""A browser, and the built site on a local port."""

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and writes no log."""

    def log_message(self, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Serve the built site on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def chromium(playwright: Playwright) -> str | None:
    """Find a Chromium: the one named by CHROMIUM, an installed one, or Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    candidates = [os.environ.get("CHROMIUM"), *map(shutil.which, names)]
    candidates.append(playwright.chromium.executable_path)
    return next((path for path in candidates if path and Path(path).exists()), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; without one the tests are skipped, but not in CI."""
    with sync_playwright() as playwright:
        path = chromium(playwright)
        if path is None:
            reason = "no Chromium: install it, or set CHROMIUM to its path"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
