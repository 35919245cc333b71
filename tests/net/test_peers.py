"""Real brokers joined over loopback: what one accepts reaches clients of the others, and strangers are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.kits.dial import Dial, dial, open_socket, read_to_end
from tests.kits.patience import until
from tieline.conf.overlay import Overlay, Peer
from tieline.conf.schema import Listener, Settings
from tieline.core.broker import Broker
from tieline.overlay.joined import Joined
from tieline.overlay.node import Node
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel, Suback, Subscribe, Subscription


def settings(name: str, *urls: str, overlay: Overlay | None = None) -> Settings:
    return Settings(
        name=name,
        listener=(Listener(url="tcp://127.0.0.1:0"), Listener(url="peer://127.0.0.1:0")),
        peer=tuple(Peer(url=url) for url in urls),
        overlay=overlay or Overlay(),
    )


@contextmanager
def line(*names: str) -> Iterator[list[BrokerThread]]:
    """Brokers of which each has dialled the one before it; all of them know of all."""
    with ExitStack() as stack:
        running: list[BrokerThread] = []
        for name in names:
            urls = [running[-1].urls[1]] if running else []
            running.append(stack.enter_context(BrokerThread(settings(name, *urls))))
        for broker in running:
            until(partial(reaches, broker, len(names) - 1), "every broker knows of all others")
        yield running


def node_of(core: Broker) -> Node:
    assert isinstance(core.routes.neighbours, Joined)
    return core.routes.neighbours.node


def reaches(broker: BrokerThread, others: int) -> bool:
    return broker.ask(lambda core: len(node_of(core).membership.reachable)) == others


def refusals(broker: BrokerThread) -> int:
    return broker.ask(lambda core: core.account.closed["peer_refused"])


def is_refused_more_than(broker: BrokerThread, times: int) -> bool:
    return refusals(broker) > times


def subscribe(client: Dial, filter_: str, qos: int) -> None:
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),)))
    assert client.expect(Suback).reasons == (qos,)


def publish(client: Dial, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
    packet_id = 7 if qos else 0
    client.send(Publish(topic=topic, payload=payload, qos=qos, packet_id=packet_id, retain=retain))
    if qos == 1:
        client.expect(Puback)
    elif qos == 2:
        client.expect(Pubrec)
        client.send(Pubrel(packet_id=7))
        client.expect(Pubcomp)


@pytest.mark.parametrize("version", [4, 5])
def test_a_subscription_is_heard_by_every_broker_before_it_is_acknowledged(version: int) -> None:
    with line("a", "b", "c") as (a, b, c), ExitStack() as stack:
        here = stack.enter_context(dial(a.urls[0], "here", version=version))
        far = stack.enter_context(dial(c.urls[0], "far", version=version))
        near = stack.enter_context(dial(b.urls[0], "near"))
        for number, filter_ in enumerate(("x/+", "y/#", "z")):
            subscribe(here, filter_, 2)
            topic = ("x/1", "y/2/3", "z")[number]
            for qos in (0, 1, 2):
                for client in (far, near):
                    publish(client, topic, b"%d" % qos, qos)
                    got = here.expect(Publish)
                    assert (got.topic, got.payload, got.qos) == (topic, b"%d" % qos, qos)
                    if qos == 1:
                        here.send(Puback(packet_id=got.packet_id))
                    elif qos == 2:
                        here.send(Pubrec(packet_id=got.packet_id))
                        here.expect(Pubrel)
                        here.send(Pubcomp(packet_id=got.packet_id))


def test_a_condition_is_asked_where_a_message_is_accepted() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "here") as here, dial(b.urls[0], "far") as far:
        subscribe(here, "grid/1?voltage<207", 0)
        for voltage in (230, 206, 229, 205):
            far.send(Publish(topic="grid/1", payload=b'{"voltage": %d}' % voltage))
        for voltage in (206, 205):
            here.expect(Publish, payload=b'{"voltage": %d}' % voltage)
        assert a.ask(lambda core: node_of(core).counts.taken) == 2


def test_what_is_retained_is_kept_where_it_was_wanted() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "here") as here, dial(b.urls[0], "far") as far:
        subscribe(here, "state", 1)
        publish(far, "state", b"on", 1, retain=True)
        here.expect(Publish, payload=b"on")
        with dial(a.urls[0], "later") as later:
            subscribe(later, "state", 0)
            assert later.expect(Publish, payload=b"on").retain


def test_whoever_connects_after_an_assured_message_has_left_is_let_in() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "here") as here:
        subscribe(here, "x", 1)
        for number in range(3):
            with dial(b.urls[0], f"far {number}") as far:
                publish(far, "x", b"%d" % number, 1)
            got = here.expect(Publish, payload=b"%d" % number)
            here.send(Puback(packet_id=got.packet_id))


def test_a_burst_of_one_broker_reaches_the_other_whole_and_in_order() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "here") as here, dial(b.urls[0], "far") as far:
        subscribe(here, "n/#", 0)
        for number in range(300):
            far.send(Publish(topic=f"n/{number % 3}", payload=b"%03d" % number))
        assert [here.expect(Publish).payload for _ in range(300)] == [b"%03d" % number for number in range(300)]


def test_a_broker_that_nobody_wants_anything_of_is_sent_nothing() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "here") as here, dial(b.urls[0], "far") as far:
        subscribe(here, "wanted", 0)
        for _ in range(5):
            far.send(Publish(topic="unwanted", payload=b"-"))
        far.send(Publish(topic="wanted", payload=b"+"))
        here.expect(Publish, payload=b"+")
        assert a.ask(lambda core: node_of(core).counts.taken) == 1
        assert b.ask(lambda core: (core.routes.count, core.routes.weight)) == (0, 0)


def test_of_two_brokers_with_one_name_the_second_is_refused_until_the_first_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both were let in, and each of them ended the connection of the other, four times in a second."""
    with line("a", "b") as (a, b), ExitStack() as stack:
        c = stack.enter_context(BrokerThread(settings("c", b.urls[1])))
        until(partial(reaches, c, 2), "c knows of both")
        here = stack.enter_context(dial(b.urls[0], "here"))
        subscribe(here, "x", 1)
        beside = stack.enter_context(BrokerThread(settings("b", a.urls[1])))
        elsewhere = stack.enter_context(BrokerThread(settings("a", c.urls[1])))
        for other, words in ((beside, "called b and is connected"), (elsewhere, "called a and is joined elsewhere")):
            until(partial(is_refused_more_than, other, 1), "it is refused again and again")
            said = [text for text in caplog.messages if words in text]
            assert sum("(peer://" in text for text in said) == 1, "who has dialled says so once"
            assert len(said) > 1, "and the other end too"
        far = stack.enter_context(dial(a.urls[0], "far"))
        publish(far, "x", b"to the first", 1)
        here.expect(Publish, payload=b"to the first")
        assert refusals(a) > 1
        assert refusals(c) > 1
        assert a.ask(lambda core: node_of(core).counts.replaced) == 0
        assert not reaches(beside, 1)
    with line("a") as (a,), ExitStack() as stack:
        with BrokerThread(settings("b", a.urls[1])) as first:
            until(partial(reaches, first, 1), "the first is there")
            second = stack.enter_context(BrokerThread(settings("b", a.urls[1])))
            until(partial(is_refused_more_than, second, 0), "its name is taken")
        until(partial(reaches, second, 1), "the first is gone")


def test_another_key_another_cluster_and_the_same_name_are_refused_and_counted(tmp_path: Path) -> None:
    keys = [tmp_path / name for name in ("one", "other")]
    for key in keys:
        key.write_bytes(key.name.encode() * 16)
    one = Overlay(key_file=str(keys[0]))
    with BrokerThread(settings("a", overlay=one)) as a, ExitStack() as stack:
        for name, overlay in (
            ("b", Overlay(key_file=str(keys[1]))),
            ("b", Overlay()),
            ("b", Overlay(key_file=str(keys[0]), cluster="elsewhere")),
            ("a", one),
        ):
            before = refusals(a)
            other = stack.enter_context(BrokerThread(settings(name, a.urls[1], overlay=overlay)))
            until(partial(is_refused_more_than, other, 0), "it is refused")
            until(partial(is_refused_more_than, a, before), "on both sides")
        friend = stack.enter_context(BrokerThread(settings("friend", a.urls[1], overlay=one)))
        until(partial(reaches, friend, 1), "the right key is let in")
        assert reaches(a, 1)


def test_brokers_that_dial_each_other_keep_one_connection() -> None:
    with BrokerThread(settings("a")) as a, BrokerThread(settings("b", a.urls[1])) as b:
        with BrokerThread(settings("c", a.urls[1], b.urls[1])) as c:
            for broker in (a, b, c):
                until(partial(reaches, broker, 2), "all are joined")
        until(partial(reaches, a, 1), "the third has gone")


def test_a_stranger_at_the_door_of_brokers_is_told_and_closed() -> None:
    with BrokerThread(settings("a")) as a:
        with open_socket(a.urls[1]) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert b"no what is at the other end does not speak tieline-peer/1" in read_to_end(sock)
        with open_socket(a.urls[1]) as sock:
            sock.sendall(b"x" * 2_000)
            assert b"no what is at the other end is no broker" in read_to_end(sock)
        until(lambda: refusals(a) == 2, "both are counted")


def test_a_broker_without_a_store_that_comes_back_takes_up_its_streams_anew() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        far = first.enter_context(BrokerThread(settings("far")))
        urls = tuple(far.urls)
        here = stack.enter_context(BrokerThread(settings("here", urls[1])))
        source = stack.enter_context(dial(here.urls[0], "source"))
        until(partial(reaches, here, 1), "both are joined")
        with dial(urls[0], "before") as client:
            subscribe(client, "x", 1)
            for number in range(3):
                publish(source, "x", b"before %d" % number, 1)
                client.expect(Publish, payload=b"before %d" % number)
        first.close()
        until(partial(reaches, here, 0), "it is missed")
        again = msgspec.structs.replace(settings("far"), listener=tuple(Listener(url=url) for url in urls))
        stack.enter_context(BrokerThread(again))
        until(partial(reaches, here, 1), "it is back")
        client = stack.enter_context(dial(urls[0], "after"))
        subscribe(client, "x", 1)
        # numbers that went on where they were would be waited for in vain
        for number in range(3):
            publish(source, "x", b"after %d" % number, 1)
            client.expect(Publish, payload=b"after %d" % number)


def test_a_broker_in_the_middle_that_comes_back_carries_on_what_is_published_then() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        middle = first.enter_context(BrokerThread(settings("middle")))
        urls = tuple(middle.urls)
        here = stack.enter_context(BrokerThread(settings("here", urls[1])))
        far = stack.enter_context(BrokerThread(settings("far", urls[1])))
        client = stack.enter_context(dial(here.urls[0], "client"))
        source = stack.enter_context(dial(far.urls[0], "source"))
        for broker in (here, far):
            until(partial(reaches, broker, 2), "all are joined")
        subscribe(client, "x", 0)
        source.send(Publish(topic="x", payload=b"before"))
        client.expect(Publish, payload=b"before")
        first.close()
        until(partial(reaches, far, 0), "the middle is missed")
        again = msgspec.structs.replace(settings("middle"), listener=tuple(Listener(url=url) for url in urls))
        stack.enter_context(BrokerThread(again))
        for broker in (here, far):
            until(partial(reaches, broker, 2), "the middle is back")
        source.send(Publish(topic="x", payload=b"after"))
        client.expect(Publish, payload=b"after")
