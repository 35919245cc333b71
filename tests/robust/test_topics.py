"""Topics, filters and retained messages as weapons: many of them, deep ones, long ones, wild ones."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.kits.dial import Dial
from tests.kits.patience import until
from tests.robust.arena import Arena
from tests.robust.served import serving
from tieline.wire.packets import Disconnect, Pingreq, Pingresp, Puback, Publish, Suback, Subscribe, Subscription
from tieline.wire.reason import Reason

_MEGABYTE = 1_000_000
_DEEP = "/".join("a" * 127)


def subscribe(client: Dial, filters: list[str], packet_id: int = 1) -> tuple[int, ...]:
    """Several filters in one packet; the codes."""
    client.send(
        Subscribe(packet_id=packet_id, subscriptions=tuple(Subscription(filter=filter_) for filter_ in filters))
    )
    return client.expect(Suback, packet_id=packet_id).reasons


def sync(client: Dial) -> None:
    """Everything sent so far has been handled."""
    client.send(Pingreq())
    client.expect(Pingresp)


# --- wildcard bombs ---------------------------------------------------------------------------------------------------


def test_filters_made_of_wildcards_cost_one_search_for_each_topic() -> None:
    """Every combination of a level and a plus matches; the search visits each node once and is remembered."""
    with Arena() as arena:
        bomber = arena.dial("bomber")
        filters = ["/".join(levels) for levels in product("a+", repeat=11)]
        for start in range(0, len(filters), 512):
            assert set(subscribe(bomber, filters[start : start + 512])) == {0}
        publisher = arena.dial("publisher")
        began = arena.spent_s()
        for number in range(200):
            publisher.send(Publish(topic="/".join("a" * 11), payload=b"%d" % number, qos=1, packet_id=number + 1))
            publisher.expect(Puback)
        assert arena.spent_s() - began < 2
        for number in range(200):
            bomber.expect(Publish, payload=b"%d" % number)


def test_a_topic_of_many_levels_against_filters_of_many_pluses() -> None:
    with Arena() as arena:
        bomber, publisher = arena.dial("bomber"), arena.dial("publisher")
        filters = ["/".join("+" * depth) + "/#" for depth in range(1, 127)] + ["/".join("+" * 128)]
        assert set(subscribe(bomber, filters)) == {0}
        for number in range(100):
            publisher.send(Publish(topic=f"{number}/{_DEEP}", payload=b"", qos=1, packet_id=number + 1))
            publisher.expect(Puback)
        for number in range(100):
            bomber.expect(Publish, topic=f"{number}/{_DEEP}")


def test_subscribing_to_everything_again_and_again_stops_nobody() -> None:
    with Arena() as arena:
        filler = arena.dial("filler")
        for start in range(0, 10_000, 500):
            filler.send(*(Publish(topic=f"many/{start + n}", payload=b"") for n in range(500)))
        sync(filler)
        wild = arena.dial("wild")
        for packet_id in range(1, 200):
            subscribe(wild, ["#", "+/#", "many/+"], packet_id)


# --- too many, too deep, too long -------------------------------------------------------------------------------------


def test_subscriptions_above_the_limit_are_refused_one_by_one() -> None:
    with Arena(subscriptions=1_000) as arena:
        flooder = arena.dial("flooder")
        codes: list[int] = []
        for start in range(0, 3_000, 500):
            codes += subscribe(flooder, [f"flood/{start + n}" for n in range(500)])
        assert codes == [0] * 1_000 + [Reason.QUOTA_EXCEEDED] * 2_000
        assert arena.ask(lambda core: core.routes.count) == 1_001
        assert arena.refusals("quota_exceeded") == 2_000
        arena.expect_log("quota_exceeded", "flooder")
        other = arena.dial("other")
        assert subscribe(other, ["a", "b"]) == (0, 0)


def test_subscriptions_of_all_clients_together_are_bounded() -> None:
    with Arena(subscriptions_total=500) as arena:
        granted = 0
        for number in range(8):
            client = arena.dial(f"flooder {number}")
            granted += subscribe(client, [f"{number}/{n}" for n in range(100)]).count(0)
        assert granted == 499
        assert arena.refusals("quota_exceeded") == 301
        arena.expect_log("quota_exceeded", "flooder 7")


def test_a_subscribe_with_too_many_filters_ends_the_connection() -> None:
    with Arena() as arena:
        flooder = arena.dial("flooder")
        wishes = tuple(Subscription(filter=f"{number:05d}") for number in range(20_000))
        flooder.send(Subscribe(packet_id=1, subscriptions=wishes))
        flooder.expect(Disconnect, reason=Reason.QUOTA_EXCEEDED)
        flooder.expect_end()
        arena.expect_closed("quota_exceeded", who="flooder")
        assert arena.ask(lambda core: core.routes.count) == 1


def test_topics_with_too_many_levels_are_refused() -> None:
    with Arena(topic_levels=10) as arena:
        client = arena.dial("deep")
        assert subscribe(client, ["/".join("a" * 10), "/".join("a" * 11)]) == (0, Reason.TOPIC_FILTER_INVALID)
        assert arena.refusals("topic_filter_invalid") == 1
        client.send(Publish(topic="/".join("a" * 11), payload=b""))
        client.expect(Disconnect, reason=Reason.TOPIC_NAME_INVALID)
        client.expect_end()
        arena.expect_closed("topic_name_invalid", who="deep")


def test_deep_topics_do_not_fill_memory(tmp_path: Path) -> None:
    """Each new topic is remembered with its route; deep ones take some 30 kB, and so few of them are."""
    with serving(tmp_path, limits="route_cache = 20_000") as broker:
        deep = broker.dial("deep")
        sync(deep)
        before = broker.resident_bytes
        for start in range(0, 10_000, 100):
            deep.send(*(Publish(topic=f"{start + n}/{_DEEP}", payload=b"x") for n in range(100)))
        sync(deep)
        assert broker.resident_bytes - before < 60 * _MEGABYTE


def test_long_topics_do_not_fill_memory(tmp_path: Path) -> None:
    with serving(tmp_path, limits="route_cache = 20_000") as broker:
        long = broker.dial("long")
        sync(long)
        before = broker.resident_bytes
        for number in range(3_000):
            long.send(Publish(topic=f"{number}" + "x" * 60_000, payload=b"x"))
        sync(long)
        assert broker.resident_bytes - before < 100 * _MEGABYTE


def test_deep_filters_do_not_fill_memory(tmp_path: Path) -> None:
    with serving(tmp_path, limits="subscriptions = 5_000") as broker:
        deep = broker.dial("deep")
        sync(deep)
        before = broker.resident_bytes
        codes: list[int] = []
        for start in range(0, 5_000, 100):
            codes += subscribe(deep, [f"{start + n}/{_DEEP}" for n in range(100)])
        assert 0 < codes.count(0) < 1_000
        assert codes.count(Reason.QUOTA_EXCEEDED) == 5_000 - codes.count(0)
        assert broker.resident_bytes - before < 40 * _MEGABYTE


# --- retained messages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits", [{"retained_messages": 100}, {"retained_bytes": 100 * 1_800}], ids=["messages", "bytes"]
)
def test_retained_messages_are_bounded_and_the_rest_is_delivered(limits: dict[str, int]) -> None:
    with Arena(**limits) as arena:
        live = arena.dial("live")
        live.subscribe("kept/#")
        publisher = arena.dial("publisher")
        for number in range(300):
            publisher.send(Publish(topic=f"kept/{number}", payload=bytes(1_000), retain=True))
        for number in range(300):
            live.expect(Publish, topic=f"kept/{number}")
        arena.expect_drops("retained_full")
        assert arena.ask(lambda core: len(core.retained)) <= 130
        # room that is given back can be used again
        publisher.send(*(Publish(topic=f"kept/{number}", payload=b"", retain=True) for number in range(50)))
        publisher.send(Publish(topic="kept/new", payload=b"x", retain=True))
        until(lambda: arena.ask(lambda core: core.retained.get("kept/new") is not None), "there is room again")


def test_deep_retained_topics_do_not_fill_memory(tmp_path: Path) -> None:
    with serving(tmp_path, limits="retained_bytes = 20_000_000") as broker:
        deep = broker.dial("deep")
        sync(deep)
        before = broker.resident_bytes
        for start in range(0, 5_000, 100):
            deep.send(*(Publish(topic=f"{start + n}/{_DEEP}", payload=b"x", retain=True) for n in range(100)))
        sync(deep)
        assert broker.resident_bytes - before < 100 * _MEGABYTE
        broker.expect_log("retained_full")
