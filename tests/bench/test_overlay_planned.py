"""The benchmark of plans: what it draws is what its goals are about, and its measures see what they should."""

from __future__ import annotations

import contextlib
import socket

import msgspec
import pytest

from tieline.bench.overlay.backbone import CAPACITY, edges, flows, size_of
from tieline.bench.overlay.planned import RunPart, before_and_after, longest_gap_s
from tieline.bench.overlay.relay import Relay
from tieline.bench.timed.link import obstacle
from tieline.bench.timed.packets import Tally
from tieline.overlay.plans import FRAMED
from tieline.plan.adapt.deviation import shortfall
from tieline.plan.adapt.next_plan import next_plan
from tieline.plan.in_force import InForce, homes
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic


def _instance() -> Instance:
    """What is published, as brokers would tell it."""
    count, joined = edges()
    instance = Instance(
        name="abilene",
        nodes=tuple(Node(id=f"b{number}", roles=("broker",)) for number in range(count)),
        links=tuple(Link(a=f"b{a}", b=f"b{b}", capacity=0.9 * CAPACITY / 8, cost=1.0) for a, b in joined),
        topics=(),
    )
    for flow in flows(count):
        source, subscriber = f"p{flow.number}", f"s{flow.number}"
        ends = ((source, "publisher", flow.origin), (subscriber, "subscriber", flow.destination))
        rate = flow.rate * (1 + FRAMED / flow.size)
        instance = msgspec.structs.replace(
            instance,
            nodes=(*instance.nodes, *(Node(id=name, roles=(role,)) for name, role, _ in ends)),  # type: ignore[arg-type]
            links=(*instance.links, *(Link(a=name, b=f"b{at}", capacity=UNLIMITED, cost=0.0) for name, _, at in ends)),
            topics=(*instance.topics, Topic(id=flow.topic, source=source, rate=rate, subscribers=(subscriber,))),
        )
    return instance


def test_the_shortest_ways_do_not_fit_and_a_plan_does() -> None:
    instance = _instance()
    at = homes(instance)
    now = InForce(instance, at, {})
    assert max(now.loads) > 1.5 * CAPACITY / 8
    assert shortfall(now) > 5_000
    found = next_plan(instance, now, at, most_moves=20, paced=None)
    assert found.plan.unmet == 0
    assert found.shortfall_after == 0
    assert max(found.after.loads) < 0.9 * CAPACITY / 8 + 1e-6
    assert {size_of(flow.topic) for flow in flows(12)} == {150, 800}


def test_a_span_knows_what_was_sent_in_it() -> None:
    tally = Tally(sent=[10, 20, 30, 40], arrived={0: 12, 1: 25, 3: 99})
    found = RunPart(15, 40).of(tally)
    assert (found.sent, found.arrived) == ([20, 30], {0: 25})
    assert found.lost == 1


def test_a_standstill_counts_until_something_comes_or_the_end() -> None:
    second = 1_000_000_000
    tally = Tally(sent=[], arrived={0: 0, 1: 11 * second, 2: 12 * second, 3: 15 * second})
    assert longest_gap_s(tally, 10 * second, 6.0) == 3.0
    assert longest_gap_s(tally, 10 * second, 12.0) == 7.0


@pytest.mark.parametrize("how", ["silence", "cut"])
def test_a_relay_dies_with_a_word_or_without(how: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as target,
        Relay(target.getsockname()[1]) as relay,
        socket.create_connection(("127.0.0.1", relay.port), 5.0) as near,
        target.accept()[0] as far,
    ):
        near.sendall(b"before")
        assert far.recv(64) == b"before"
        far.settimeout(0.5)
        getattr(relay, how)()
        if how == "silence":
            # one look may have been under way
            near.sendall(b"maybe")
            with contextlib.suppress(TimeoutError):
                assert far.recv(64) == b"maybe"
            near.sendall(b"never")
            with pytest.raises(TimeoutError):
                far.recv(64)
        else:
            near.settimeout(5.0)
            with pytest.raises(ConnectionResetError):
                near.recv(64)


@pytest.mark.slow
def test_a_plan_relieves_twelve_brokers_on_thin_links() -> None:
    why = obstacle()
    if why is not None:
        pytest.skip(why)
    before, after = before_and_after(15.0)
    assert before["fullest"] > 1.5 and before["delivered"] < 0.6
    assert after["fullest"] < 1.0 and after["delivered"] > 0.99
    assert after["off_plan"] < 0.05
