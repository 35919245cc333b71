"""Tests of a file share a process; so do all that share a Spark session or the planner's loops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kits.groups import SHARED, group_of


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/core/test_broker.py::test_one[a::b-tests/plan]", "tests/core/test_broker.py"),
        ("tests/pipeline/jobs/test_heat.py::test_one", "spark"),
        ("tests/plan/search/test_rounds.py::test_one", "plan"),
        ("tests/cli/test_plan.py::TestOne::test_two", "plan"),
        ("tests/cli/test_planet.py::test_one", "tests/cli/test_planet.py"),
    ],
)
def test_groups_are_told_by_the_path(test: str, group: str) -> None:
    assert group_of(test) == group


def test_every_place_that_is_shared_exists() -> None:
    root = Path(__file__).parents[1]
    assert [place for places in SHARED.values() for place in places if not (root / place).exists()] == []


def test_whoever_asks_for_spark_is_in_its_group(request: pytest.FixtureRequest) -> None:
    """Looks at the tests that were collected with this one: all of them, when the whole suite runs."""
    asking = [item for item in request.session.items if "spark" in getattr(item, "fixturenames", ())]
    assert [item.nodeid for item in asking if group_of(item.nodeid) != "spark"] == []


@pytest.mark.parametrize("number", range(8))
def test_a_file_runs_in_one_process(number: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first of these to run leaves its process id where the workers of one run all look."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    note = shared / f"process-of-{Path(__file__).stem}"
    try:
        with note.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        pass
    assert note.read_text() == str(os.getpid())
