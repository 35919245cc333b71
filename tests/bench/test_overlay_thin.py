"""Three thin hops: what is promised for each, and real brokers in namespaces that keep it."""

from __future__ import annotations

import pytest

from tieline.bench.overlay import thin
from tieline.bench.timed.link import obstacle


def test_the_promise_for_a_hop_is_the_sum_of_its_bounds() -> None:
    bound = thin.HopBound(bytes_per_s=16_000.0)
    assert bound.kernel + bound.segment + bound.quantum == 4_096 + 2 * 1_400
    assert 0.48 < bound.seconds < 0.52
    assert thin.HopBound(bytes_per_s=16_000.0, rtt_s=0.2).seconds == pytest.approx(bound.seconds + 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("link", ["", "capacity = 124_000", "capacity = 124_000\ncompress = true"])
def test_what_is_urgent_crosses_three_full_hops_in_time_and_low_ones_are_served(link: str) -> None:
    why = obstacle()
    if why is not None:
        pytest.skip(why)
    found = thin.run(seconds=40.0, link=link)
    assert found["over_bound"] <= 1
    assert found["urgent_p50_ms"] <= found["bound_ms"]
    assert found["low_served"] >= 0.99
    assert found["disordered"] == 0
    assert found["link_bytes_per_s"] > 8_000
