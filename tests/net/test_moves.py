"""Sessions that move between real brokers: their clients find everything at whichever they connect to."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import Any

from msgspec.structs import replace

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.test_peers import line, node_of, publish, settings, subscribe
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Limits, Mqtt
from tieline.core.broker import Broker
from tieline.core.holdings import Kind
from tieline.core.ports import Everyone
from tieline.net.manage import answer_drain
from tieline.overlay.joined import Joined
from tieline.overlay.sessions.moves import Moves
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Disconnect, Puback, Pubcomp, Publish, Pubrec, Pubrel, Will
from tieline.wire.reason import Reason


def moves_of(core: Broker) -> Moves:
    assert isinstance(core.routes.neighbours, Joined)
    return core.routes.neighbours.moves


def knows(broker: BrokerThread, client_id: str) -> bool:
    return broker.ask(lambda core: moves_of(core).registry.find(client_id) is not None)


def kept(url: str, client_id: str, *, is_present: bool, **fields: Any) -> Dial:
    """A client that wants its session; whether it is told that there was one is asserted."""
    client = Dial(url)
    connack = client.connect(client_id, clean_start=False, properties={"session_expiry_interval": 3600}, **fields)
    assert (connack.reason, connack.session_present) == (Reason.SUCCESS, is_present)
    return client


def test_a_session_moves_with_its_subscriptions_and_what_waits() -> None:
    with line("a", "b", "c") as (a, b, c), ExitStack() as stack:
        with kept(a.urls[0], "s", is_present=False) as client:
            subscribe(client, "x/+", 1)
        far = stack.enter_context(dial(c.urls[0], "far"))
        for number in range(5):
            publish(far, f"x/{number % 2}", b"%d" % number, 1)
        until(partial(knows, b, "s"), "b has heard of the session at a")
        with kept(b.urls[0], "s", is_present=True) as client:
            for number in range(5):
                got = client.expect(Publish, payload=b"%d" % number)
                client.send(Puback(packet_id=got.packet_id))
            publish(far, "x/1", b"new", 1)
            client.expect(Publish, payload=b"new")


def test_the_old_connection_ends_wherever_it_is() -> None:
    with line("a", "b") as (a, b), ExitStack() as stack:
        here = stack.enter_context(kept(a.urls[0], "s", is_present=False))
        subscribe(here, "x", 1)
        until(partial(knows, b, "s"), "b has heard of the session at a")
        there = stack.enter_context(kept(b.urls[0], "s", is_present=True))
        here.expect(Disconnect, reason=Reason.SESSION_TAKEN_OVER)
        # before that the clocks of both decide which connection is the later one, and a turn may be long
        since = b.ask(lambda core: moves_of(core).registry.epoch("s"))
        until(
            lambda: (a.ask(lambda core: moves_of(core).registry.find("s")) or (0, 0))[1] == since, "a has heard of it"
        )
        # also where nothing is to be kept, and where nothing was
        again = stack.enter_context(dial(a.urls[0], "s"))
        there.expect(Disconnect, reason=Reason.SESSION_TAKEN_OVER)
        last = stack.enter_context(dial(b.urls[0], "s"))
        again.expect(Disconnect, reason=Reason.SESSION_TAKEN_OVER)
        publish(last, "x", b"-", 0)
        until(lambda: a.ask(lambda core: "s" not in core.sessions), "the session at a is over")
        assert b.ask(lambda core: len(core.sessions["s"].subscriptions)) == 0


def test_packet_ids_in_use_move_on_both_sides() -> None:
    with line("a", "b") as (a, b), ExitStack() as stack:
        far = stack.enter_context(dial(b.urls[0], "far"))
        subscribe(far, "from/s", 2)
        with kept(a.urls[0], "s", is_present=False) as client:
            subscribe(client, "x", 2)
            publish(far, "x", b"one", 2)
            sent = client.expect(Publish, payload=b"one", dup=False)
            client.send(Publish(topic="from/s", payload=b"once", qos=2, packet_id=9))
            client.expect(Pubrec, packet_id=9)
        far.expect(Publish, payload=b"once")
        until(partial(knows, b, "s"), "b has heard of the session at a")
        with kept(b.urls[0], "s", is_present=True) as client:
            client.expect(Publish, payload=b"one", dup=True, packet_id=sent.packet_id)
            client.send(Publish(topic="from/s", payload=b"once", qos=2, packet_id=9, dup=True))
            client.expect(Pubrec, packet_id=9)
            client.send(Pubrel(packet_id=9))
            client.expect(Pubcomp, packet_id=9)
        until(lambda: a.ask(lambda core: not len(moves_of(core).passages)), "nothing is left of it at a")


def test_a_session_of_another_user_is_not_handed_over() -> None:
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(settings("a"), access=Everyone()))
        b = stack.enter_context(BrokerThread(settings("b", a.urls[1]), access=Everyone()))
        with kept(a.urls[0], "s", is_present=False, username="one") as client:
            subscribe(client, "x", 1)
        until(partial(knows, b, "s"), "b has heard of the session at a")
        with Dial(b.urls[0]) as thief:
            assert thief.connect("s", clean_start=False, username="other").reason is Reason.CLIENT_IDENTIFIER_NOT_VALID
        assert a.ask(lambda core: len(core.sessions["s"].subscriptions)) == 1


def test_a_home_that_is_gone_is_waited_for_and_then_not() -> None:
    with line("a", "b") as (a, b):
        with kept(a.urls[0], "s", is_present=False) as client:
            subscribe(client, "x", 1)
        until(partial(knows, b, "s"), "b has heard of the session at a")
        a.ask(lambda core: setattr(node_of(core).carrier.taker, "_deliver", lambda origin, lane, ready: 0))
        with kept(b.urls[0], "s", is_present=False):
            assert b.ask(lambda core: node_of(core).counts.claims_late) == 1


def test_a_full_or_draining_broker_sends_clients_where_others_say_they_are() -> None:
    few = Limits(sessions=2)
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(replace(settings("a"), limits=few)))
        others = [
            stack.enter_context(BrokerThread(settings(name, a.urls[1], overlay=Overlay(reference=f"{name}.example"))))
            for name in ("b", "c")
        ]
        stack.enter_context(BrokerThread(settings("d", a.urls[1])))  # which says nothing
        until(lambda: a.ask(_sends_to) and a.ask(_sends_to), "a has heard of somebody")
        until(lambda: {a.ask(_sends_to) for _ in range(4)} == {"b.example", "c.example"}, "brokers take turns")
        for number in range(2):
            stack.enter_context(kept(a.urls[0], f"s{number}", is_present=False))
        for version, reasons in ((5, {Reason.USE_ANOTHER_SERVER}), (4, {Reason.SERVER_UNAVAILABLE})):
            with Dial(a.urls[0], version=version) as late:
                refusal = late.connect("late")
                assert refusal.reason in reasons
                assert bool(refusal.properties.get("server_reference")) is (version == 5)
        others[0].ask(lambda core: answer_drain(core, {"begin": True}, monotonic()))
        until(lambda: {a.ask(_sends_to) for _ in range(4)} == {"c.example"}, "nobody is sent to b")
        with Dial(others[0].urls[0]) as late:
            assert late.connect("late").properties["server_reference"] == "c.example"
        others[0].ask(lambda core: answer_drain(core, {"stop": True}, monotonic()))
        until(lambda: {a.ask(_sends_to) for _ in range(4)} == {"b.example", "c.example"}, "it takes clients again")


def _sends_to(core: Broker) -> str:
    return moves_of(core).reference()


def test_a_broker_is_emptied_and_nothing_is_lost() -> None:
    reference = replace(settings("a"), mqtt=Mqtt(server_reference="b.example"))
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(reference))
        b = stack.enter_context(BrokerThread(settings("b", a.urls[1])))
        far = stack.enter_context(dial(b.urls[0], "far"))
        for number in range(5):
            with kept(a.urls[0], f"s{number}", is_present=False) as client:
                subscribe(client, f"x/{number}", 1)
        connected = stack.enter_context(kept(a.urls[0], "here", is_present=False))
        subscribe(connected, "x/#", 1)
        for number in range(5):
            publish(far, f"x/{number}", b"%d" % number, 1)
        begun = a.ask(lambda core: answer_drain(core, {"begin": True}, monotonic()))
        assert begun["is_draining"]
        assert not begun["is_done"]
        packets = [packet for packet in connected.rest() if isinstance(packet, Disconnect)]
        assert [packet.reason for packet in packets] == [Reason.USE_ANOTHER_SERVER]
        assert packets[0].properties["server_reference"] == "b.example"
        with Dial(a.urls[0]) as late:
            refusal = late.connect("late")
            assert refusal.reason is Reason.USE_ANOTHER_SERVER
            assert refusal.properties["server_reference"] == "b.example"
        until(lambda: a.ask(lambda core: answer_drain(core, {}, monotonic())["is_done"]), "nothing is left at a")
        for number in range(5):
            with kept(b.urls[0], f"s{number}", is_present=True) as client:
                client.expect(Publish, payload=b"%d" % number)
        with kept(b.urls[0], "here", is_present=True) as client:
            assert sorted(client.expect(Publish).payload for _ in range(5)) == [b"%d" % number for number in range(5)]
        assert not a.ask(lambda core: answer_drain(core, {"stop": True}, monotonic()))["is_draining"]
        with dial(a.urls[0], "late"):
            pass


def test_a_broker_that_is_alone_cannot_be_emptied() -> None:
    assert "not joined" in answer_drain(Broker(), {"begin": True}, 0.0)["error"]


def test_a_claim_cancels_a_will_that_waits() -> None:
    will = Will(topic="gone", payload=b"s", qos=1, properties={"will_delay_interval": 3600})
    with line("a", "b") as (a, b), ExitStack() as stack:
        stack.enter_context(kept(a.urls[0], "s", is_present=False, will=will)).close()
        until(partial(knows, b, "s"), "b has heard of the session at a")
        until(lambda: a.ask(lambda core: core.sessions["s"].connection is None), "its client has gone")
        assert a.ask(lambda core: core.sessions["s"].will is not None)
        stack.enter_context(kept(b.urls[0], "s", is_present=True))
        until(lambda: a.ask(lambda core: not len(moves_of(core).passages)), "nothing is left of it at a")
        assert a.ask(lambda core: "s" in core.sessions or core.holdings.by_kind()[Kind.WILLS]) == 0
