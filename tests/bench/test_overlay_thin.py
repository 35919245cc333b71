"""Three thin hops: what is promised for each, and real brokers in namespaces that keep it."""

from __future__ import annotations

import pytest

from tieline.bench.overlay import thin, thin_cut
from tieline.bench.timed.link import obstacle


def test_the_promise_for_a_hop_is_the_sum_of_its_bounds() -> None:
    bound = thin.HopBound(bytes_per_s=16_000.0)
    assert bound.kernel + bound.segment + bound.quantum == 4_096 + 2 * 1_400
    assert 0.48 < bound.seconds < 0.52
    assert thin.HopBound(bytes_per_s=16_000.0, rtt_s=0.2).seconds == pytest.approx(bound.seconds + 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "delay_s"),
    [("", 0.0), ("capacity = 124_000", 0.0), ("capacity = 124_000\ncompress = true", 0.0), ("", 0.02)],
)
def test_what_is_urgent_crosses_three_full_hops_in_time_and_low_ones_are_served(link: str, delay_s: float) -> None:
    why = obstacle()
    if why is not None:
        pytest.skip(why)
    found = thin.run(seconds=40.0, link=link, delay_s=delay_s)
    assert found["over_bound"] <= 1
    assert found["urgent_p50_ms"] <= found["bound_ms"]
    assert found["low_served"] >= 0.99
    assert found["disordered"] == 0
    assert found["link_bytes_per_s"] > 8_000


@pytest.mark.slow
def test_what_is_assured_comes_once_and_in_order_where_the_middle_hop_was_cut_one_way_and_then_the_other() -> None:
    why = obstacle()
    if why is not None:
        pytest.skip(why)
    found = thin_cut.run(delay_s=0.02)
    assert found["published"] > 200
    # what came right before a cut and right after it says that there was one
    assert found["gap_s"] >= thin_cut.CUT_S / 2
    assert found["lost"] == found["doubled"] == found["disordered"] == 0
