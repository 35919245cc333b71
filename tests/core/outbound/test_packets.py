"""What is bound when a message becomes a packet."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.kits.sessions import lone_session
from tieline.core.message import Message
from tieline.core.outbound.packets import properties_of
from tieline.core.receiver import Grant


@given(now=st.floats(0, 1e9), interval=st.integers(0, 2**32 - 1))
@example(now=107.449, interval=100)
def test_no_more_is_left_of_an_interval_than_was_said(now: float, interval: int) -> None:
    message = Message(b"t", b"", expires=now + interval)
    bound = properties_of(message, Grant(lone_session("s", 10, 1_000), 0), 5, now)
    assert bound is not None
    assert bound[-5:] == b"\x02" + interval.to_bytes(4, "big")
