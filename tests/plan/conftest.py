"""Loops are compiled, or loaded, before any test: compiling takes longer than a test may."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SEARCHES = {
    *(_HERE / name for name in ("search", "adapt", "loops")),
    *(_HERE / name for name in ("test_solve.py", "test_explain.py")),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Warm the loops up if a test that searches was collected."""
    if config.option.collectonly:
        return
    if any(_SEARCHES & {item.path, item.path.parent} for item in items):
        from tieline.plan.search.warm import warm

        warm()
