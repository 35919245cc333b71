"""A page that is left open for an hour is as small as at the beginning; HEAP_SECONDS makes it shorter."""

from __future__ import annotations

import os
import time
from statistics import mean

import pytest

from tests.web.page.conftest import Open, World

SECONDS = float(os.environ.get("HEAP_SECONDS", "3600"))
#: What may be more at the end, in bytes: three quarters of an hour of one leaked row each second would be far more.
MOST_GROWTH = 1_500_000
_VIEWS = ("overview", "messages", "clients", "network", "grid", "plan")


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
def test_the_heap_is_flat(world: World, open_eye: Open) -> None:
    eye = open_eye(world.shown.url)
    page = eye.look("grid")
    page.wait_for_selector(".plane-box svg")
    debugger = eye.context.new_cdp_session(page)
    sizes: list[tuple[float, int]] = []
    begun = time.monotonic()
    number = 0
    while (passed := time.monotonic() - begun) < SECONDS:
        eye.look(_VIEWS[number % len(_VIEWS)])
        number += 1
        page.wait_for_timeout(max(1000, SECONDS * 1000 / 240))
        debugger.send("HeapProfiler.collectGarbage")
        sizes.append((passed, debugger.send("Runtime.getHeapUsage")["usedSize"]))
    # the first part fills what is bounded: a span of points, the nodes, the way that they took
    middle = [size for passed, size in sizes if SECONDS / 3 < passed < 2 * SECONDS / 3]
    end = [size for passed, size in sizes if passed >= 2 * SECONDS / 3]
    print(f"heap: {mean(middle) / 1e6:.2f} MB in the middle, {mean(end) / 1e6:.2f} MB at the end, {len(sizes)} looks")
    assert mean(end) - mean(middle) < MOST_GROWTH
    eye.check()
