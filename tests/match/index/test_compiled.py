"""What is special about compiled code: that it is compiled before it is needed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numba")

from tieline.match.box import Box, everything
from tieline.match.index import compiled
from tieline.match.index.protocol import Boxes


def test_no_question_waits_for_the_compiler() -> None:
    compiled.warm()
    kernels: list[Any] = [compiled.search_point, compiled.search_all, compiled.set_slot, compiled.clear_slot]
    before = [len(kernel.signatures) for kernel in kernels]
    for dimensions in (1, 2, 7):
        count = 5000
        index = compiled.CompiledIndex(
            dimensions, Boxes(list(range(count)), [[0.0] * dimensions] * count, [[1.0] * dimensions] * count)
        )
        index.add(count, everything(dimensions))
        index.match((0.5,) * dimensions)
        index.match_batch([(0.5,) * dimensions] * 300)
        index.coverers(Box((0.2,) * dimensions, (0.3,) * dimensions))
        index.remove(count)
    assert [len(kernel.signatures) for kernel in kernels] == before
