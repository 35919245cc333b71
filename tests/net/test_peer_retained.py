"""What one of several joined brokers retains, all of them retain: whoever comes gets the newest, wherever."""

from __future__ import annotations

from functools import partial

import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import line, publish, subscribe
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


def retained(broker: BrokerThread) -> dict[str, bytes]:
    return broker.ask(
        lambda core: {
            message.topic.decode(): message.payload for message in core.retained.match("#") if message is not None
        }
    )


def has(broker: BrokerThread, topic: str, payload: bytes | None) -> bool:
    return retained(broker).get(topic) == payload


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_whoever_subscribes_anywhere_gets_what_was_retained_right_before(qos: int) -> None:
    with line("a", "b", "c") as (a, b, c), dial(a.urls[0], "source") as source:
        for number in range(3):
            topic = f"state/{number}"
            publish(source, topic, b"on", qos, retain=True)
            if not qos:
                until(partial(has, a, topic, b"on"), "it is retained where it was accepted")
            with dial((c, b, a)[number].urls[0], "late") as late:
                subscribe(late, topic, 0)
                got = late.expect(Publish)
                assert (got.topic, got.payload, got.retain) == (topic, b"on", True)
        for broker in (a, b, c):
            until(partial(has, broker, "state/2", b"on"), "all brokers retain it")


def test_what_is_cleared_is_cleared_everywhere() -> None:
    with line("a", "b", "c") as (a, b, c), dial(a.urls[0], "one") as one, dial(c.urls[0], "other") as other:
        publish(one, "state", b"on", 1, retain=True)
        until(partial(has, c, "state", b"on"), "it has come")
        publish(other, "state", b"", 1, retain=True)
        for broker in (a, b, c):
            until(partial(has, broker, "state", None), "it is gone")
        assert a.ask(lambda core: core.routes.neighbours.retaining.convergence.gone_bytes) > 0  # type: ignore[attr-defined]
