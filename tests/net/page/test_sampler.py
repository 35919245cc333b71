"""Waiting times from buckets: what is shown lies where the wanted part of the messages lies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.core.account import WAIT_BUCKETS, Account
from tieline.net.page.sampler import quantile


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_quantile_is_in_the_bucket_of_the_true_one(waits: list[float], part: float) -> None:
    account = Account()
    for wait in waits:
        account.waited(0, wait, 1)
    rank = max(1, -(-int(part * len(waits) * 1000) // 1000))
    true = sorted(waits)[min(len(waits), max(1, -(-int(part * 1000) * len(waits) // 1000))) - 1]
    found = quantile(account.waits[0], part)
    assert rank and found is not None
    bucket = min(int(true * 1e3).bit_length(), WAIT_BUCKETS - 1)
    least = (1 << (bucket - 1)) * 1e-3 if bucket else 0.0
    assert least - 1e-9 <= found <= (1 << bucket) * 1e-3 + 1e-9


def test_without_messages_there_is_none() -> None:
    assert quantile([0] * WAIT_BUCKETS, 0.99) is None
