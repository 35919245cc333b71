"""kill -9 at random moments: nothing acknowledged is lost, nothing at QoS 2 comes twice, every flow keeps its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.robust.crash import crashing


@pytest.mark.parametrize("seed", [1])
def test_a_few_kills(tmp_path: Path, seed: int) -> None:
    with crashing(tmp_path, seed) as harness:
        for _ in range(5):
            harness.round()
        harness.finish()
        harness.check()
        assert harness.published > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_three_hundred_kills(tmp_path: Path, seed: int) -> None:
    with crashing(tmp_path, 1_000 + seed) as harness:
        for _ in range(100):
            harness.round()
        harness.finish()
        harness.check()
        print(f"{harness.published} messages")
