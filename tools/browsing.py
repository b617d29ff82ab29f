"""The built site on a local port, and a Chromium to look at it; for tests and other tools."""

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No page reaches any other machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and writes no log."""

    def log_message(self, *args: object) -> None:
        """Write nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yield the address."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def start_chromium() -> Iterator[Browser]:
    """Start the Chromium named by CHROMIUM, an installed one, or Playwright's own.

    Raises:
        FileNotFoundError: there is none.
    """
    with sync_playwright() as playwright:
        candidates = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES)]
        candidates.append(playwright.chromium.executable_path)
        path = next((path for path in candidates if path and Path(path).exists()), None)
        if path is None:
            raise FileNotFoundError("no Chromium: install it, or set CHROMIUM to its path")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
