"""Which tests run in the same process, where there are several: those of a file, and those that share what is dear.

A Spark session takes seconds to start and a gigabyte to keep, and the planner's loops take a quarter of a minute to
compile when nobody has compiled them before.  A browser takes a processor.  So one process does each.  Groups are told
by the path alone, because the process that hands out the tests knows no more of them, and so that the names of tests
can be given to pytest as shown.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from xdist.scheduler.loadscope import LoadScopeScheduling

#: The places of tests that share something, from the root of the tree.
SHARED: Final = {
    "spark": ("tests/pipeline",),
    "page": ("tests/web/page",),
    "plan": ("tests/plan", "tests/cli/plan", "tests/cli/test_plan.py", "tests/bench/test_plan.py"),
}


def group_of(test: str) -> str:
    """The name of what the test shares with others, or else its file."""
    file = test.partition("::")[0]
    for name, places in SHARED.items():
        if any(PurePosixPath(file).is_relative_to(place) for place in places):
            return name
    return file


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # it comes without types
    """Groups go to whichever process is free, those with many tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
