"""A subscriber that acknowledges nothing until no packet id is left, over a real socket."""

from __future__ import annotations

from tests.kits.dial import Dial
from tests.kits.patience import until
from tests.robust.arena import Arena
from tieline.wire.packets import Puback, Publish
from tieline.wire.properties import Properties

#: All packet ids that there are.
_IDS = 65_535
#: Messages that are sent together; and as many beyond, which have to wait for one that is free.
_BATCH = 500


def _publish(publisher: Dial, numbers: range) -> None:
    publisher.send(*(Publish(topic="t", payload=b"%d" % n, qos=1, packet_id=n % _BATCH + 1) for n in numbers))
    for _ in numbers:
        publisher.expect(Puback)


def test_when_all_packet_ids_are_in_use_messages_wait_and_none_is_lost_or_used_twice() -> None:
    with Arena(inflight=_IDS, queue_bytes=67_108_864) as arena:
        subscriber = arena.dial("silent", properties=Properties(receive_maximum=_IDS))
        publisher = arena.dial("talking")
        subscriber.subscribe("t", qos=1)
        sent: list[Publish] = []
        for start in range(0, _IDS, _BATCH):
            numbers = range(start, min(start + _BATCH, _IDS))
            _publish(publisher, numbers)
            # it reads, and says nothing
            sent += [subscriber.expect(Publish) for _ in numbers]
        assert {message.packet_id for message in sent} == set(range(1, _IDS + 1))
        _publish(publisher, range(_IDS, _IDS + _BATCH))
        assert arena.ask(lambda core: len(core.sessions["silent"].inflight)) == _IDS
        assert arena.ask(lambda core: len(core.sessions["silent"].queue)) == _BATCH
        # any that are free again are used for what waits, in the order in which it came
        free = [message.packet_id for message in sent[::100]][:_BATCH]
        subscriber.send(*(Puback(packet_id=packet_id) for packet_id in free))
        sent += [subscriber.expect(Publish) for _ in free]
        assert {message.packet_id for message in sent[_IDS:]} == set(free)
        assert [int(message.payload) for message in sent] == list(range(_IDS + _BATCH))
        subscriber.send(*(Puback(packet_id=packet_id) for packet_id in range(1, _IDS + 1)))
        until(lambda: not arena.ask(lambda core: core.sessions["silent"].inflight), "nothing is in flight")
        assert not arena.ask(lambda core: dict(core.account.drops))
