from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.net.store.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Stores on one data directory; what is still open at the end is closed."""
    with Stage(tmp_path / "data") as stage:
        yield stage


@pytest.fixture
def new_stage(tmp_path: Path) -> Iterator[Callable[[], Stage]]:
    """Stages on directories of their own."""
    stages: list[Stage] = []

    def make() -> Stage:
        stages.append(Stage(tmp_path / f"data {len(stages)}"))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
