"""Real brokers on a ring over loopback: they find each other by one address, and dial whom they need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec
import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.test_peers import publish, settings, subscribe
from tieline.cli.net_ring import ring as shown
from tieline.conf.overlay import Overlay, Ring
from tieline.conf.schema import Attribute, Event, Settings
from tieline.core.broker import Broker
from tieline.overlay.ring_member.member import RingMember
from tieline.pytest_plugin import BrokerThread
from tieline.web.figures import take
from tieline.web.metrics import render
from tieline.wire.packets import Publish

ON_RING = Overlay(mode="ring", ring=Ring(stabilise_s=0.3))
METER = {"meter": Event(topic="m/#", attributes=(Attribute("v", bounds=(0, 100)),))}


def on_ring(name: str, *urls: str, overlay: Overlay = ON_RING, event: dict[str, Event] | None = None) -> Settings:
    found = settings(name, *urls, overlay=overlay)
    return msgspec.structs.replace(found, event=METER if event is None else event)


def member_of(core: Broker) -> RingMember:
    assert isinstance(core.routes.neighbours, RingMember)
    return core.routes.neighbours


def is_round(broker: BrokerThread, others: int) -> bool:
    """Whether a broker is on the ring, and knows all that stand behind it."""

    def look(core: Broker) -> bool:
        member = member_of(core)
        node = member.node
        return node is not None and member.is_joined and node.upkeep.is_closed and len(node.table.successors) == others

    return broker.ask(look)


@contextmanager
def ring(*names: str) -> Iterator[list[BrokerThread]]:
    """Brokers of which each was given the address of the one before it."""
    with ExitStack() as stack:
        running: list[BrokerThread] = []
        for name in names:
            urls = [running[-1].urls[1]] if running else []
            running.append(stack.enter_context(BrokerThread(on_ring(name, *urls))))
        for broker in running:
            until(partial(is_round, broker, len(names) - 1), "the ring is round")
        yield running


def test_what_one_accepts_comes_to_clients_of_all_who_want_it() -> None:
    with ring("a", "b", "c", "d") as brokers, ExitStack() as stack:
        there = [stack.enter_context(dial(broker.urls[0], f"s{at}")) for at, broker in enumerate(brokers)]
        for client, filter_ in zip(there, ("m/#", "m/1?v > 50", "n/#", "m/1"), strict=True):
            subscribe(client, filter_, 1)
        source = stack.enter_context(dial(brokers[2].urls[0], "source"))
        for qos, value in ((0, 20), (1, 70), (2, 80)):
            publish(source, "m/1", b'{"v": %d}' % value, qos)
        publish(source, "n/1", b"x", 1)
        for client, values in ((there[0], {20, 70, 80}), (there[1], {70, 80}), (there[3], {20, 70, 80})):
            assert {json.loads(client.expect(Publish).payload)["v"] for _ in values} == values
        assert there[2].expect(Publish).payload == b"x"
        assert sum(broker.ask(lambda core: core.from_brokers.useless) for broker in brokers) == 0


def test_members_of_a_group_are_those_of_one_broker() -> None:
    with ring("a", "b") as brokers, ExitStack() as stack:
        members = [stack.enter_context(dial(brokers[1].urls[0], f"g{number}")) for number in range(2)]
        for member in members:
            subscribe(member, "$share/g/x", 1)
        source = stack.enter_context(dial(brokers[0].urls[0], "source"))
        for number in range(4):
            publish(source, "x", b"%d" % number, 1)
        found = sorted(_take(member, 2) for member in members)
        assert sorted(text for texts in found for text in texts) == [b"0", b"1", b"2", b"3"]


def _take(client: Dial, count: int) -> list[bytes]:
    return [client.expect(Publish).payload for _ in range(count)]


def test_what_is_retained_stays_where_it_was_published() -> None:
    with ring("a", "b") as brokers, ExitStack() as stack:
        watcher = stack.enter_context(dial(brokers[1].urls[0], "watcher"))
        subscribe(watcher, "x", 1)
        source = stack.enter_context(dial(brokers[0].urls[0], "source"))
        publish(source, "x", b"1", 1, retain=True)
        assert not watcher.expect(Publish).retain
        late = stack.enter_context(dial(brokers[1].urls[0], "late"))
        subscribe(late, "x", 0)
        publish(source, "x", b"2", 1)
        assert late.expect(Publish).payload == b"2"
        here = stack.enter_context(dial(brokers[0].urls[0], "here"))
        subscribe(here, "x", 0)
        assert here.expect(Publish).payload == b"1"


def _refused(broker: BrokerThread) -> int:
    return broker.ask(lambda core: core.account.closed["peer_refused"])


@pytest.mark.parametrize(
    "other",
    [
        partial(settings, "b"),
        partial(on_ring, "b", event={}),
        partial(on_ring, "b", overlay=Overlay(mode="ring", ring=Ring(stabilise_s=0.3, dispatch="partitioned"))),
        partial(on_ring, "b", overlay=Overlay(mode="ring", cluster="other")),
    ],
)
def test_brokers_of_something_else_are_refused(other: partial[Settings]) -> None:
    with BrokerThread(on_ring("a")) as first:
        conf = other(first.urls[1])
        with BrokerThread(conf):
            until(lambda: _refused(first), "the other one is refused")
            assert first.ask(lambda core: len(member_of(core).links.far)) == 0


def test_a_broker_shows_whom_it_knows() -> None:
    with ring("a", "b", "c") as brokers:
        report = brokers[1]._server.ring
        assert report is not None
        answer = brokers[1].ask(lambda _core: report.answer())
        assert answer["verdict"].startswith(f"On the ring, with {len(answer['fingers'])} other")
        assert {each["name"] for each in answer["behind"]} == {"a", "c"}
        assert shown(answer) is not None
        page, _ = render(brokers[1].ask(lambda _core: take(brokers[1]._server)), "")
        assert b"tieline_ring_fingers %d.0" % len(answer["fingers"]) in page
        assert b"tieline_ring_useless_total 0.0" in page
        topics = brokers[1].ask(lambda _core: report.topics())
        assert topics["tieline/ring/joined"] == 1


def test_a_broker_that_stops_takes_leave_and_the_ring_closes_behind_it() -> None:
    with ring("a", "b") as brokers:
        with BrokerThread(on_ring("c", brokers[0].urls[1])) as third:
            until(partial(is_round, third, 2), "the ring is round")
        for broker in brokers:
            until(partial(is_round, broker, 1), "the ring is round without the third")
