"""Settings for all tests, the built site, and a loud word where no browser can look at it."""

from pathlib import Path

import hypothesis
import pytest

# The same examples on every run: a failure here is a failure everywhere.
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60)
hypothesis.settings.register_profile(
    "thorough", hypothesis.settings.get_profile("course"), max_examples=600
)
hypothesis.settings.load_profile("course")

ROOT = Path(__file__).parent.parent
SITE = ROOT / "_build/html"
SITE_SOURCES = (
    "_config.yml _toc.yml tools/export.py tools/imports.py transformer_lib/*.py "
    "transformer_lib/*/*.py transformer_lib/course/* transformer_lib/datasets/*/__init__.py "
    "book/* book/_ext/* book/_static/* book/_templates/*"
)


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the built site, which must be newer than all that it is built from."""
    index = SITE / "index.html"
    if not index.exists():
        pytest.fail("no built site at _build/html: run `make book`")
    sources = [path for pattern in SITE_SOURCES.split() for path in ROOT.glob(pattern)]
    built = index.stat().st_mtime
    newer = [p for p in sources if p.is_file() and p.stat().st_mtime > built]
    if newer:
        names = ", ".join(str(path.relative_to(ROOT)) for path in newer)
        pytest.fail(f"_build/html is older than {names}: run `make book`")
    return SITE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the library's own messages."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests/library/errors"):
            item.add_marker("without_shape_checks")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End with one loud line where tests did not run for want of a browser."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    count = sum("no Chromium" in str(report.longrepr) for report in skipped)
    if count:
        cure = "install Chromium, or set CHROMIUM to its path"
        reporter.write_line(
            f"!!! {count} BROWSER TESTS DID NOT RUN: {cure} !!!", red=True, bold=True
        )
