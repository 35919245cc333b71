"""What a condition means, told from the outside: packets in, packets out."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.core.coherence import check_routes
from tests.core.content import (
    FILTER,
    PCC,
    content_world,
    got,
    said,
    send,
    versions,
    volts,
    ways,
)
from tests.kits.check_access import LateAccess
from tests.kits.world import World, payloads
from tieline.conf.schema import Attribute, Content, Event, Mqtt, Settings
from tieline.core.client import Hold
from tieline.core.ports import Refused
from tieline.core.routing import content_match
from tieline.core.routing.conditional import MessageRoutes
from tieline.match.events import EventType
from tieline.wire.packets import (
    Disconnect,
    Puback,
    Publish,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from tieline.wire.reason import Reason

_NEAR = math.nextafter(207.0, 0.0), 207.0, math.nextafter(207.0, 300.0)

SEMANTICS: list[tuple[str, list[bytes], list[bytes]]] = [
    # bounds, at the neighbours that float64 has
    ("voltage<207", volts(*_NEAR), volts(_NEAR[0])),
    ("voltage<=207", volts(*_NEAR), volts(*_NEAR[:2])),
    ("voltage>207", volts(*_NEAR), volts(_NEAR[2])),
    ("voltage>=207", volts(*_NEAR), volts(*_NEAR[1:])),
    ("voltage=207", volts(*_NEAR), volts(207.0)),
    ("voltage!=207", volts(*_NEAR), volts(_NEAR[0], _NEAR[2])),
    ("195.5<=voltage<207", volts(195.49, 195.5, 206, 207), volts(195.5, 206)),
    ("207>voltage>195.5", volts(195.5, 206, 207), volts(206)),
    # 0 and -0 are the same number
    ("voltage=0", volts(0, -0.0), volts(0, -0.0)),
    # beyond the declared bounds, which are 0 and 400
    ("voltage>399", volts(399, 401, 1e300, -5), volts(401, 1e300)),
    ("voltage<1", volts(-5, -1e300, 2), volts(-5, -1e300)),
    # missing, and not only missing
    ("voltage<207", [said(), said(phases=3), b'{"voltage":null}'], []),
    ("not voltage<207", [said(), said(phases=3), b'{"voltage":null}'], []),
    ("voltage!=207", [said()], []),
    ("not voltage in (1,2)", [said()], []),
    ("voltage<207 or phases=3", [said(phases=3), said(voltage=1)], [said(phases=3), said(voltage=1)]),
    ("not (voltage<207 and phases=3)", [said(phases=1), said(phases=3), said()], [said(phases=1)]),
    # no number
    ("voltage<207", [b'{"voltage":NaN}', b'{"voltage":1e999}', said(voltage="1"), said(voltage=True)], []),
    ("not voltage<207", [b'{"voltage":NaN}', b'{"voltage":1e999}', said(voltage="1"), said(voltage=[1])], []),
    # nothing that can be read
    ("voltage<207 or not voltage<207", [b"", b"no JSON", b'{"voltage":', b"\xff\xfe"], []),
    # integers: 3.0 is one, 3.5 and those beyond 2**53 are not
    ("phases>=3", [b'{"phases":3.0}', said(phases=3.5), said(phases=2**53 + 1)], [b'{"phases":3.0}']),
    ("phases=9007199254740992", [said(phases=2**53), said(phases=2**53 + 1)], [said(phases=2**53)]),
    # categories, declared or not, are equal or not, and nothing else
    ("mode=island", [said(mode="island"), said(mode="Island"), said(mode=1)], [said(mode="island")]),
    ("mode!=island", [said(mode="grid"), said(mode="new"), said(mode=1)], [said(mode="grid"), said(mode="new")]),
    ("mode in (island, 'black start')", [said(mode="black start"), said(mode="grid")], [said(mode="black start")]),
    ("mode>'a'", [said(mode="grid")], []),
    # truth values are no numbers
    ("closed=true", [said(closed=True), said(closed=1), said(closed="true"), said(closed=False)], [said(closed=True)]),
    ("closed=1", [said(closed=True), said(closed=1)], []),
    ("not closed=true", [said(closed=False), said(closed=1), said()], [said(closed=False)]),
    # times: numbers, and texts with an offset
    ("at>='1970-01-01T00:00:10Z'", [said(at=9.999), said(at=10)], [said(at=10)]),
    (
        "at=10",
        [said(at="1970-01-01T01:00:10+01:00"), said(at="1970-01-01T00:00:10")],
        [said(at="1970-01-01T01:00:10+01:00")],
    ),
    ("at>'1970-01-01T00:00:09Z' and x=1", [said(at=9, x=1), said(at=10, x=1)], [said(at=10, x=1)]),
    # attributes that no type declares
    ("x.y>1", [said(x={"y": 2}), said(x={"y": 1}), said(x=2)], [said(x={"y": 2})]),
    ("x>1 and voltage<207", [said(voltage=1, x=2), said(voltage=300, x=2)], [said(voltage=1, x=2)]),
    ("not x>1", [said(x=1), said(), said(x="1")], [said(x=1)]),
]


@ways
@versions
@pytest.mark.parametrize(("condition", "sent", "expected"), SEMANTICS)
def test_a_condition_means_what_the_page_says(
    condition: str, sent: list[bytes], expected: list[bytes], version: int, way: dict[str, Any]
) -> None:
    world = content_world(**way)
    asking, all_, publisher = (world.client(name, version=version) for name in ("asking", "all", "p"))
    assert asking.subscribe(f"{FILTER}?{condition}").reasons == (0,)
    all_.subscribe(FILTER)
    for qos in (0, 1):
        send(publisher, *sent, qos=qos)
        assert got(asking) == expected
        assert got(all_) == sent
    for payload in sent:
        send(publisher, payload)
    assert got(asking) == expected
    check_routes(world.broker)


@versions
@pytest.mark.parametrize(
    ("condition", "payload", "is_wanted"),
    [
        ("a.b>1", b'{"a":{"b":2}}', True),
        ("a.b>1", b'{"a.b":2}', False),
        ("a.0>1", b'{"a":[2]}', True),
        ("value>1", b"2", True),
        ("value>1", b"1", False),
        ("value=on", b'"on"', True),
        ("value=true", b"true", True),
        ("`odd name`=1", b'{"odd name":1}', True),
        ("a=1", b"not JSON", False),
    ],
)
def test_topics_without_a_type_are_searched(condition: str, payload: bytes, is_wanted: bool, version: int) -> None:
    world = content_world()
    client, publisher = world.client("c", version=version), world.client("p", version=version)
    filter_ = f"loose/topic?{condition}"
    if not client.subscribe(filter_).reasons[0] < 0x80:
        pytest.fail(f"{filter_} was refused")
    for _ in range(2):
        publisher.publish("loose/topic", payload)
    assert len(client.messages()) == (2 if is_wanted else 0)


def test_an_untyped_payload_that_is_too_large_is_not_searched() -> None:
    world = content_world(content={"untyped_bytes": 40})
    client, publisher = world.client("c"), world.client("p")
    client.subscribe("loose?v<5")
    publisher.publish("loose", said(v=1, pad="x" * 10))
    publisher.publish("loose", said(v=1, pad="x" * 100))
    assert payloads(client.messages()) == [said(v=1, pad="x" * 10)]
    assert (world.broker.account.examinations, world.broker.account.unreadable) == (2, 1)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_user_property_stands_in_for_an_attribute(qos: int) -> None:
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207 and site=7", qos=2)
    publisher.publish(PCC, said(voltage=1), qos, user_property=[("site", "7")])
    publisher.publish(PCC, b"no JSON", qos, user_property=[("voltage", "206"), ("site", "7")])
    publisher.publish(PCC, said(voltage=300), qos, user_property=[("voltage", "1"), ("site", "7")])
    publisher.publish(PCC, said(voltage=1), qos, user_property=[("site", "8")])
    assert payloads([packet for packet in client.take() if isinstance(packet, Publish)]) == [
        said(voltage=1),
        b"no JSON",
    ]


class Count:
    """Counts what is decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.payloads: list[bytes] = []
        read, rows = EventType.read, EventType.rows

        def count_read(event: EventType, payload: bytes, properties: bytes = b"", topic: str = "") -> Any:
            self.payloads.append(payload)
            return read(event, payload, properties, topic)

        def count_rows(event: EventType, payloads: list[bytes], topic: str = "") -> Any:
            self.payloads.extend(payloads)
            return rows(event, payloads, topic)

        monkeypatch.setattr(EventType, "read", count_read)
        monkeypatch.setattr(EventType, "rows", count_rows)

    def take(self) -> list[bytes]:
        taken, self.payloads = self.payloads, []
        return taken


@ways
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_payload_is_decoded_once_and_only_where_somebody_asks(
    qos: int, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Count(monkeypatch)
    world = content_world(**way)
    plain, publisher = world.client("plain"), world.client("p")
    plain.subscribe("#", qos=2)
    send(publisher, *volts(1, 2, 3), qos=qos)
    assert count.take() == []
    askers = [world.client(f"a{number}") for number in range(3)]
    for asker, condition in zip(askers, ("voltage<9", "changed(voltage)", "x=1"), strict=True):
        asker.subscribe(f"{FILTER}?{condition}", f"{PCC}?{condition}", f"$share/g/#?{condition}", qos=2)
    send(publisher, *volts(1, 2, 3), qos=qos)
    assert count.take() == volts(1, 2, 3)
    publisher.take()
    publisher.publish("loose", said(x=1), qos)
    assert count.take() == [said(x=1)]
    for asker in askers:
        asker.drop()
    count.take()  # what was in flight to members of the group has been offered to the others
    send(publisher, *volts(1, 2, 3), qos=qos)
    assert count.take() == []


def test_a_condition_on_one_topic_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Count(monkeypatch)
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{PCC}?voltage<207", "#")
    for _ in range(2):
        send(publisher, *volts(1, 2), topic="microgrid/8/pcc")
        publisher.publish("loose", said(voltage=1), qos=1)
    assert count.take() == []
    assert world.broker.account.examinations == 0


def test_a_message_that_may_not_be_published_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Count(monkeypatch)
    access = LateAccess(late=frozenset({"publish"}))
    world = content_world(access=access)
    client = world.client("c")
    client.subscribe(f"{FILTER}?voltage<207")
    client.put(PCC, said(voltage=1), qos=1)
    access.answer(world, Refused("nothing at all"))
    client.expect(Puback, reason=Reason.NOT_AUTHORIZED)
    assert count.take() == []


@pytest.mark.parametrize("split", [False, True])
def test_subscriptions_count_from_their_place_among_the_messages(split: bool) -> None:
    """Messages of a chunk are looked at together, but not with subscriptions that came behind them."""
    world = content_world(split=split)
    client, other = world.client("c"), world.client("o")
    other.subscribe(f"{FILTER}?voltage>=0")
    other.publish(PCC, said(voltage=0))
    wish = f"{FILTER}?voltage<207"
    client.send(
        Publish(topic=PCC, payload=said(voltage=1)),
        Subscribe(packet_id=1, subscriptions=(Subscription(filter=wish),)),
        Publish(topic=PCC, payload=said(voltage=2)),
        Unsubscribe(packet_id=2, filters=(wish,)),
        Publish(topic=PCC, payload=said(voltage=3)),
        Subscribe(packet_id=3, subscriptions=(Subscription(filter=wish),)),
        Publish(topic=PCC, payload=said(voltage=4)),
    )
    assert payloads([packet for packet in client.take() if isinstance(packet, Publish)]) == volts(2, 4)
    client.send(Publish(topic=PCC, payload=said(voltage=5)), Disconnect())
    assert got(other) == volts(0, 1, 2, 3, 4, 5)


@ways
def test_messages_of_all_kinds_stay_in_order(way: dict[str, Any]) -> None:
    """What is looked at does not fall behind what is not."""
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207", "plain", qos=1)
    publisher.publish("plain", b"0")
    publisher.publish(PCC, said(voltage=0))
    client.take()
    publisher.send(
        Publish(topic=PCC, payload=said(voltage=1)),
        Publish(topic="plain", payload=b"2"),
        Publish(topic=PCC, payload=said(voltage=300)),
        Publish(topic=PCC, payload=said(voltage=3)),
        Publish(topic="plain", payload=b"4", qos=1, packet_id=1),
        Publish(topic=PCC, payload=said(voltage=5), qos=1, packet_id=2),
        Publish(topic=PCC, payload=said(voltage=6)),
        Publish(topic="plain", payload=b"7"),
    )
    expected = [said(voltage=1), b"2", said(voltage=3), b"4", said(voltage=5), said(voltage=6), b"7"]
    assert got(client) == expected


@ways
def test_references_follow_the_order_of_messages_of_every_qos(way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage)", qos=2)
    publisher.send(
        *(
            Publish(topic=PCC, payload=said(voltage=voltage), qos=qos, packet_id=number if qos else 0)
            for number, (voltage, qos) in enumerate([(1, 0), (2, 1), (2, 0), (1, 2), (1, 0), (2, 0)], 1)
        )
    )
    assert payloads([packet for packet in client.take() if isinstance(packet, Publish)]) == volts(1, 2, 1, 2)


def test_others_have_their_turn_while_many_conditions_are_evaluated() -> None:
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    for number in range(0, 3_000, 1_000):
        client.subscribe(*(f"loose?x{at}=1" for at in range(number, number + 1_000)))
    publisher.publish("loose", said(x1=1))
    client.take()
    before = world.broker.account.examinations
    data = b"".join(b"\x30" + bytes((7 + 1 + len(said(x1=1)),)) + b"\x00\x05loose\x00" + said(x1=1) for _ in range(20))
    world.broker.receive(publisher.connection, data, world.now)
    looked_at = world.broker.account.examinations - before
    assert 0 < looked_at < 20, "a turn ends when it has cost enough"
    assert publisher.connection.hold is Hold.TURN
    world.settle()
    assert len(client.messages()) == 20


def test_remembered_routes_of_messages_are_bounded() -> None:
    world = content_world()
    world.broker.routes.message_routes = narrowed = MessageRoutes(3_000)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe("#")
    client.subscribe(*(f"{FILTER}?voltage<{number}" for number in range(40)))
    send(publisher, *volts(*range(40)))
    assert len(client.messages()) == 40
    assert narrowed.resets > 0
    assert 0 < len(narrowed) < 10


def test_messages_with_the_same_takers_share_a_route() -> None:
    world = content_world()
    one, two, publisher = world.client("1"), world.client("2"), world.client("p")
    one.subscribe(f"{FILTER}?voltage<100")
    two.subscribe(f"{FILTER}?voltage<200")
    send(publisher, *volts(*range(300)))
    assert len(world.broker.routes.message_routes) == 1, "both; one alone has a route of its own, and nobody needs none"
    assert [len(client.messages()) for client in (one, two)] == [100, 200]


def test_an_index_that_grows_is_made_anew() -> None:
    world = content_world(subscriptions="none")
    clients = [world.client(f"c{number}") for number in range(2)]
    publisher = world.client("p")
    for start in range(0, 6_000, 1_000):
        for client in clients[: 1 + (start == 0)]:
            client.subscribe(*(f"{FILTER}?{low}<=voltage<{low + 1}" for low in range(start, start + 1_000)))
    send(publisher, *volts(0.5, 999.5, 1_000.5, 5_999.5, 6_000.5))
    assert got(clients[0]) == volts(0.5, 999.5, 1_000.5, 5_999.5)
    assert got(clients[1]) == volts(0.5, 999.5)
    clients[0].drop()
    send(publisher, *volts(0.5, 1_000.5))
    assert got(clients[1]) == volts(0.5)


def test_births_are_read_whoever_is_subscribed() -> None:
    schema = pytest.importorskip("tieline.match.events.sparkplug")
    event = Event(topic="spBv1.0/+/DDATA/#", payload="sparkplug", attributes=(Attribute("voltage", path="Inputs/V"),))
    world = World(Settings(mqtt=Mqtt(sys_interval_s=0), content=Content(), event={"spb": event}))
    client, publisher = world.client("c"), world.client("p")
    make, _ = schema.payload_class()
    birth = make()
    metric = birth.metrics.add(name="Inputs/V", alias=7, datatype=10)
    metric.double_value = 1.0
    data = []
    for value in (200.0, 210.0):
        message = make()
        message.metrics.add(alias=7).double_value = value
        data.append(message.SerializeToString())
    publisher.publish("spBv1.0/g/DBIRTH/e/d", birth.SerializeToString())
    publisher.publish("spBv1.0/g/DBIRTH/e/d", birth.SerializeToString(), qos=1)
    client.subscribe("spBv1.0/g/DDATA/#?voltage<207")
    for payload in data:
        publisher.publish("spBv1.0/g/DDATA/e/d", payload)
    assert payloads(client.messages()) == data[:1]


def test_a_message_for_nobody_has_a_route() -> None:
    assert not content_match._NOWHERE.has_receivers
    assert content_match._NOWHERE.is_simple
