"""Joined brokers answer: where a message would go, what was sent in vain, and why a link went down."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import line, node_of, publish, reaches, settings, subscribe
from tieline.core.account import Event
from tieline.core.answers.trace import Probe, trace
from tieline.core.broker import Broker
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


def events(broker: BrokerThread, kind: str) -> list[Event]:
    """What of a kind is in the story."""
    return broker.ask(lambda core: [event for event in core.account.events if event.kind == kind])


def test_a_message_is_followed_to_the_door_of_other_brokers() -> None:
    with line("a", "b", "c") as (a, b, c), dial(c.urls[0], "far") as far, dial(a.urls[0], "near") as near:
        subscribe(far, "x/+", 1)
        subscribe(near, "x/1", 1)

        def fates(core: Broker) -> dict[str, tuple[str, str]]:
            found = trace(core, Probe(topic="x/1", qos=1), time.monotonic())
            return {fate.client: (fate.fate, fate.text) for fate in found.receivers}

        def ways(core: Broker) -> dict[str, tuple[str, ...]]:
            return {fate.client: fate.way for fate in trace(core, Probe(topic="x/1"), time.monotonic()).receivers}

        assert a.ask(ways) == {"near": (), "broker c": ("a", "b", "c")}
        assert a.ask(fates) == {"near": ("sent", "at once"), "broker c": ("carried", "by the link to b: b → c")}
        assert b.ask(fates) == {
            "broker a": ("carried", "by the link to a"),
            "broker c": ("carried", "by the link to c"),
        }


def test_a_message_for_a_broker_that_is_away_waits_or_is_lost_by_its_qos() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        far = first.enter_context(BrokerThread(settings("far")))
        here = stack.enter_context(BrokerThread(settings("here", far.urls[1])))
        until(lambda: reaches(here, 1), "both are joined")
        with dial(far.urls[0], "client") as client:
            subscribe(client, "x", 1)
        with dial(far.urls[0], "stays", properties={"session_expiry_interval": 60}) as client:
            subscribe(client, "x", 1)
        first.close()
        until(lambda: reaches(here, 0), "it is missed")

        def fate(core: Broker, qos: int) -> str:
            (found,) = trace(core, Probe(topic="x", qos=qos), time.monotonic()).receivers
            return found.fate

        assert here.ask(lambda core: [fate(core, 0), fate(core, 1)]) == ["dropped", "waits"]


def test_why_a_link_went_down_is_an_event_with_a_name() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        far = first.enter_context(BrokerThread(settings("far")))
        here = stack.enter_context(BrokerThread(settings("here", far.urls[1])))
        until(lambda: reaches(here, 1), "both are joined")
        up = here.ask(lambda core: next(iter(node_of(core).links.values())).meter.changed_at)
        first.close()
        until(lambda: reaches(here, 0), "it is missed")
        (meter,) = here.ask(lambda core: [link.meter for link in node_of(core).links.values()])
        assert meter.lost.total() == 1 and meter.changed_at > up
        (name,) = meter.lost
        assert name in {"closed", "broken"}


def test_what_was_sent_in_vain_is_counted() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "here") as here, dial(b.urls[0], "far") as far:
        subscribe(here, "x?v > 5", 0)
        # who asks for what has changed is sent everything, and the broker of the subscriber looks
        subscribe(here, "y?changed(v)", 0)
        for value in (1, 9):
            far.send(Publish(topic="x", payload=b'{"v": %d}' % value))
        here.expect(Publish, topic="x")
        for value in (1, 1, 2):
            publish(far, "y", b'{"v": %d}' % value, 1)
        here.expect(Publish, payload=b'{"v": 1}')
        here.expect(Publish, payload=b'{"v": 2}')
        assert a.ask(lambda core: core.from_brokers.useless) == 1
