"""Every event of a shape is wanted by one subscription, and its plain counterpart reaches the same client."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tieline.bench.load.job import Garbled
from tieline.bench.load.packets import Stream
from tieline.bench.match.broker import unpacked
from tieline.bench.match.deliveries import CountedFlow, compare_round, lone_p50_us, rotated
from tieline.bench.match.shapes import SPREADS, Shape, Spread
from tieline.match.where import Predicate, parse, split
from tieline.wire.topics import matches


def shape(spread: Spread = "one filter") -> Shape:
    return Shape(spread=spread, subscriptions=120, clients=6, events=80)


def packets(stream: Stream) -> list[bytes]:
    size = stream.layout.packet
    return [bytes(stream.data[number * size : (number + 1) * size]) for number in range(stream.count)]


def spoken(expression: str | None) -> Predicate:
    assert expression is not None
    return parse(expression)


@pytest.mark.parametrize("spread", SPREADS)
def test_an_event_meets_exactly_one_condition_and_that_is_its_owners(spread: Spread) -> None:
    one = shape(spread)
    asked = [
        (client, split(filter_, question_mark=True))
        for client, filters in enumerate(one.content_filters())
        for filter_ in filters
    ]
    assert len(asked) == one.subscriptions == len({wish for _, wish in asked})
    conditions = [(client, wish.filter, spoken(wish.expression)) for client, wish in asked]
    stream = one.content_stream()
    for packet, owner in zip(packets(stream), one.owners(), strict=True):
        topic = packet[stream.layout.topic].decode()
        says = json.loads(packet[stream.layout.payload])
        assert [
            client for client, filter_, predicate in conditions if matches(filter_, topic) and predicate.holds(says.get)
        ] == [owner]


@pytest.mark.parametrize("spread", SPREADS)
def test_the_plain_counterpart_sends_the_same_payloads_to_the_same_clients(spread: Spread) -> None:
    one = shape(spread)
    content, plain = one.content_stream(), one.plain_stream()
    filters = one.plain_filters()
    for mine, theirs, owner in zip(packets(content), packets(plain), one.owners(), strict=True):
        assert mine[content.layout.payload] == theirs[plain.layout.payload]
        topic = theirs[plain.layout.topic].decode()
        assert [client for client in range(one.clients) if topic in filters[client]] == [owner]


@contextmanager
def switchboard(
    routing: Callable[[int], int], size: int, clients: int
) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """A broker of sorts: the n-th message of its only publisher goes wherever ``routing`` says."""
    with ExitStack() as stack:
        ours, theirs = socket.socketpair()
        pairs = [socket.socketpair() for _ in range(clients)]
        for sock in (ours, theirs, *(end for pair in pairs for end in pair)):
            stack.enter_context(sock)

        def work() -> None:
            number, rest = 0, b""
            while chunk := theirs.recv(65_536):
                rest += chunk
                while len(rest) >= size:
                    pairs[routing(number)][1].sendall(rest[:size])
                    number, rest = number + 1, rest[size:]

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        for sock in (ours, *(pair[0] for pair in pairs)):
            sock.setblocking(False)
        yield ours, [pair[0] for pair in pairs]
        ours.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_a_round_is_compared_message_by_message() -> None:
    one = shape()
    stream, owners = one.content_stream(), one.owners()
    with switchboard(lambda number: owners[number], stream.layout.packet, one.clients) as (publisher, subscribers):
        assert compare_round(publisher, subscribers, stream, owners) == one.events


def test_messages_that_change_places_are_noticed() -> None:
    one = shape()
    stream, owners = one.content_stream(), one.owners()
    first = next(number for number, owner in enumerate(owners) if owner != owners[0])
    wrong = [*owners]
    wrong[0], wrong[first] = owners[first], owners[0]  # every subscriber gets as many messages as it should
    with (
        switchboard(lambda number: wrong[number], stream.layout.packet, one.clients) as (publisher, subscribers),
        pytest.raises(Garbled, match="did not get"),
    ):
        compare_round(publisher, subscribers, stream, owners)


@pytest.mark.parametrize("is_right", [True, False])
def test_every_subscribers_messages_are_counted(is_right: bool) -> None:
    one = shape()
    stream, owners = one.content_stream(), one.owners()
    rotation, its_owners = rotated(stream, owners, 30)
    assert packets(rotation) == [*packets(stream)[30:], *packets(stream)[:30]]
    routing = its_owners if is_right else [*its_owners[1:], its_owners[0]]
    with switchboard(lambda number: routing[number % len(routing)], stream.layout.packet, one.clients) as (sock, subs):
        flow = CountedFlow(publishers=[(sock, rotation)], owners=[its_owners], subscribers=subs)
        volume = flow.spell(0.05)
        assert volume.delivered == volume.published > 0
        if is_right:
            assert flow.count() == volume.delivered
        elif volume.delivered % stream.count:  # after whole rounds everybody has as many as they should
            with pytest.raises(Garbled, match="was to get"):
                flow.count()
        flow.close()


def test_one_message_in_flight_arrives_at_its_owner() -> None:
    one = shape()
    stream, owners = one.content_stream(), one.owners()
    with switchboard(lambda number: owners[number % len(owners)], stream.layout.packet, one.clients) as (sock, subs):
        assert lone_p50_us(sock, subs, stream, owners, count=100) > 0


def test_a_comparisons_numbers_become_repetitions() -> None:
    found = {"a/0/rate": 1.0, "b/0/rate": 2.0, "a/1/rate": 3.0, "a/0/cpu": 4.0}
    assert unpacked(found) == {"a": [{"rate": 1.0, "cpu": 4.0}, {"rate": 3.0}], "b": [{"rate": 2.0}]}
