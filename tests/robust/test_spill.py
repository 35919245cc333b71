"""A live broker whose absent client has more waiting than memory holds, killed while it fills and while it drains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.dial import Dial
from tests.robust.test_crash_store import Live, live
from tieline.wire.packets import Puback, Publish, Suback, Subscribe, Subscription
from tieline.wire.reason import Reason

pytestmark = pytest.mark.robust

ROUNDS = 4
EACH = 400
#: Few wait in memory, so that nearly all of it waits in the store alone.
SMALL = "[limits]\nqueue_messages = 20\ninflight = 10"


def _publish(broker: Live, topic: str, payloads: list[bytes]) -> list[bytes]:
    """Publish without waiting for each other's acknowledgements; what was acknowledged."""
    publisher = broker.dial("publisher", is_kept=False)
    for packet_id, payload in enumerate(payloads, 1):
        publisher.send(Publish(topic=topic, payload=payload, qos=1, packet_id=packet_id))
    answers = [publisher.expect(Puback) for _ in payloads]
    publisher.close()
    return [payloads[answer.packet_id - 1] for answer in answers if answer.reason < Reason.UNSPECIFIED_ERROR]


def _read(reader: Dial, most: int) -> list[bytes]:
    """Take messages one after the other and acknowledge each."""
    got = []
    for _ in range(most):
        message = reader.expect(Publish)
        reader.send(Puback(packet_id=message.packet_id))
        got.append(message.payload)
    return got


def test_nothing_is_lost_or_out_of_order_when_a_broker_that_spills_is_killed(tmp_path: Path) -> None:
    owed: list[bytes] = []
    got: list[bytes] = []
    with live(tmp_path, more=SMALL) as broker:
        reader = broker.dial("reader")
        reader.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=1),)))
        reader.expect(Suback)
        reader.close()
        owed += _publish(broker, "t", [b"0 %d" % number for number in range(EACH)])
        broker.process.kill()
    for round_ in range(1, ROUNDS):
        with live(tmp_path, more=SMALL) as broker:
            reader = broker.dial("reader")
            got += _read(reader, EACH // 2)
            owed += _publish(broker, "t", [b"%d %d" % (round_, number) for number in range(EACH)])
            got += _read(reader, EACH // 4)
            broker.process.kill()
            reader.close()
    with live(tmp_path, more=SMALL) as broker:
        reader = broker.dial("reader")
        while not got or got[-1] != owed[-1]:
            got += _read(reader, 1)
        reader.close()
    assert list(dict.fromkeys(got)) == owed, "everything that was acknowledged, in order"
    # what was in flight when a broker died, or whose acknowledgement was not permanent, comes again; nothing else does
    assert len(got) - len(owed) <= ROUNDS * 50
