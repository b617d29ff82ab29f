"""What ``pytest --nbval`` compares: what cells print and show, not their warnings.

A warning on stderr comes and goes with the versions of other libraries. That no page shows one is
seen to by tools/execute.py, which stores no notebook that prints to stderr.
"""

import pytest


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Take stderr out of the comparison of every notebook."""
    if type(collector).__name__ == "IPyNbFile":
        collector.skip_compare += ("stderr",)  # type: ignore[attr-defined]
