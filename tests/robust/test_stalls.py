"""Small packets that ask for much work: the loop must come back to everybody else in between."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import product

import pytest

from tests.kits.patience import until
from tests.robust.arena import Arena
from tieline.wire.encode import encode
from tieline.wire.packets import Disconnect, Pingreq, Pingresp, Publish, Suback, Subscribe, Subscription
from tieline.wire.reason import Reason

#: One turn of the loop may not take more of a processor; a tenth of it is usual.
TURN_S = 0.4


@pytest.fixture(autouse=True)
def _other_tests_garbage_is_not_looked_at() -> Iterator[None]:
    """What thousands of tests left behind would be looked through in one of our turns; a server freezes it likewise."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def wishes(filters: list[str]) -> tuple[Subscription, ...]:
    return tuple(Subscription(filter=filter_) for filter_ in filters)


def test_a_search_in_vain_among_retained_messages() -> None:
    with Arena() as arena:
        filler = arena.dial("filler")
        for start in range(0, 40_000, 1_000):
            filler.send(*(Publish(topic=f"kept/{start + n}", payload=b"x", retain=True) for n in range(1_000)))
        until(lambda: arena.ask(lambda core: len(core.retained)) == 40_000, "all are kept")
        arena.take_longest_turn()
        seeker = arena.dial("seeker")
        seeker.send(Subscribe(packet_id=1, subscriptions=wishes([f"+/+/{number}" for number in range(60)])))
        seeker.expect(Suback)
        seeker.send(Pingreq())
        seeker.expect(Pingresp)
        assert arena.take_longest_turn() < TURN_S


def test_a_subscription_to_everything_there_is() -> None:
    with Arena() as arena:
        filler = arena.dial("filler")
        for start in range(0, 40_000, 1_000):
            filler.send(*(Publish(topic=f"kept/{start + n}", payload=b"x", retain=True) for n in range(1_000)))
        until(lambda: arena.ask(lambda core: len(core.retained)) == 40_000, "all are kept")
        arena.take_longest_turn()
        reader = arena.dial("reader")
        reader.subscribe("#", qos=1)
        for number in range(40_000):
            reader.expect(Publish, topic=f"kept/{number}", retain=True)
        assert arena.take_longest_turn() < TURN_S


def test_wild_filters_beside_many_remembered_topics() -> None:
    with Arena() as arena:
        filler = arena.dial("filler")
        for start in range(0, 40_000, 1_000):
            filler.send(*(Publish(topic=f"many/{start + n}", payload=b"x") for n in range(1_000)))
        filler.send(Pingreq())
        filler.expect(Pingresp)
        arena.take_longest_turn()
        wild = arena.dial("wild")
        wild.send(Subscribe(packet_id=1, subscriptions=wishes([f"+/+/{number}" for number in range(100)])))
        wild.expect(Suback)
        wild.close()
        arena.expect_closed("connection_lost", who="wild")
        assert arena.take_longest_turn() < TURN_S


def test_a_wildcard_bomb_that_is_new_every_time() -> None:
    """Each topic is another one, so that nothing remembered helps."""
    with Arena() as arena:
        bomber = arena.dial("bomber")
        filters = ["/".join(levels) for levels in product("a+", repeat=11)]
        for start in range(0, len(filters), 1_000):
            bomber.send(Subscribe(packet_id=1, subscriptions=wishes(filters[start : start + 1_000])))
            bomber.expect(Suback)
        topics = ["/".join("a" * 10) + f"/{number}" for number in range(1_500)]
        arena.take_longest_turn()
        publisher = arena.dial("publisher", version=4)
        publisher.send(*(Publish(topic=topic, payload=b"") for topic in topics))
        for topic in topics:
            bomber.expect(Publish, topic=topic)
        assert arena.take_longest_turn() < TURN_S


def test_a_large_fan_out_in_one_chunk() -> None:
    with Arena() as arena:
        crowd = [arena.dial(f"one of many {number}") for number in range(300)]
        for client in crowd:
            client.subscribe("all/#")
        arena.take_longest_turn()
        publisher = arena.dial("publisher")
        publisher.send(*(Publish(topic=f"all/{number}", payload=b"") for number in range(4_000)))
        for number in range(4_000):
            crowd[0].expect(Publish, topic=f"all/{number}")
        assert arena.take_longest_turn() < TURN_S
        assert not arena.ask(lambda core: core.account.drops)


def test_a_packet_full_of_user_properties() -> None:
    with Arena() as arena:
        client = arena.dial("wordy")
        data = encode(Publish(topic="t", payload=b"", properties={"user_property": [("", "")] * 200_000}), 5)
        arena.take_longest_turn()
        client.send(data)
        client.expect(Disconnect, reason=Reason.QUOTA_EXCEEDED)
        client.expect_end()
        arena.expect_closed("quota_exceeded", who="wordy")
        assert arena.take_longest_turn() < TURN_S
