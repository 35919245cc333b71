"""Clients that do not read what they asked for, or do not answer it."""

from __future__ import annotations

import pytest

from tests.kits.patience import until
from tests.robust.arena import Arena
from tieline.core.inbound.chunk import MAX_UNREAD
from tieline.wire.packets import Puback, Publish, Subscribe, Subscription
from tieline.wire.reason import Reason

_QUEUE = 1_000_000
#: More than the kernel takes on loopback, and the queue on top of it.
_FLOOD = 24_000_000


@pytest.mark.parametrize("version", [4, 5])
def test_a_subscriber_that_stops_reading_loses_the_oldest_qos_0_messages(version: int) -> None:
    with Arena(queue_bytes=_QUEUE) as arena:
        arena.subscriber("stopped", "bulk", version=version)
        publisher = arena.dial("publisher", version=version)
        packet = Publish(topic="bulk", payload=bytes(8_000))
        for _ in range(_FLOOD // 80_000):
            publisher.send(*[packet] * 10)
        arena.expect_drops("queue_full")
        arena.expect_log("queue_full", "stopped")
        assert arena.ask(lambda core: core.queued_bytes) <= _QUEUE + 100_000
        assert arena.ask(lambda core: core.sessions["stopped"].dropped) > 0


def test_a_subscriber_that_stops_reading_qos_1_makes_its_publisher_hear_of_it() -> None:
    with Arena(queue_bytes=_QUEUE) as arena:
        arena.subscriber("stopped", "bulk", qos=1)
        publisher = arena.dial("publisher")
        answers: list[Reason] = []
        for number in range(_FLOOD // 100_000):
            publisher.send(Publish(topic="bulk", payload=bytes(100_000), qos=1, packet_id=number + 1))
            answers.append(publisher.expect(Puback, packet_id=number + 1).reason)
            if answers[-1] is Reason.QUOTA_EXCEEDED:
                break
        assert answers[-1] is Reason.QUOTA_EXCEEDED
        arena.expect_drops("refused")
        assert arena.ask(lambda core: core.queued_bytes) <= _QUEUE + 200_000
        assert not arena.drops("queue_full"), "what was acknowledged is kept"


def test_a_3_1_1_publisher_is_paused_and_goes_on_when_the_subscriber_reads_again() -> None:
    with Arena(queue_bytes=_QUEUE) as arena:
        subscriber, publisher = arena.dial("stopped"), arena.dial("publisher", version=4)
        subscriber.subscribe("bulk", qos=1)
        count = 0
        while not arena.holds("queue_full"):
            count += 1
            publisher.send(Publish(topic="bulk", payload=b"%d " % count + bytes(100_000), qos=1, packet_id=count))
            assert count < 500
        arena.expect_held("queue_full", who="publisher")
        assert arena.ask(lambda core: core.queued_bytes) <= _QUEUE + 200_000
        for number in range(1, count + 1):
            message = subscriber.expect(Publish)
            assert message.payload.startswith(b"%d " % number)
            subscriber.send(Puback(packet_id=message.packet_id))
        for number in range(1, count + 1):
            publisher.expect(Puback, packet_id=number)
        assert not arena.ask(lambda core: core.account.drops)


def test_a_3_1_1_publisher_that_is_paused_too_long_is_disconnected() -> None:
    with Arena(queue_bytes=_QUEUE, pause_max_s=0.5) as arena:
        arena.subscriber("stopped", "bulk", qos=1)
        publisher = arena.dial("publisher", version=4)
        count = 0
        while not arena.holds("queue_full"):
            count += 1
            publisher.send(Publish(topic="bulk", payload=bytes(100_000), qos=1, packet_id=count))
        arena.expect_closed("paused_too_long", who="publisher")
        arena.expect_log("paused_too_long", "the queue of stopped stayed full")


def test_a_client_that_never_reads_its_answers_is_not_read_itself() -> None:
    with Arena() as arena:
        client = arena.dial("pinger", reads_little=True)
        client.sock.settimeout(0.2)
        pings = b"\xc0\x00" * 30_000
        sent = 0
        while sent < 200_000_000:
            try:
                sent += client.sock.send(pings)
            except TimeoutError:  # the broker may also just be slow
                if arena.holds("not_reading"):
                    break
        arena.expect_held("not_reading", who="pinger")

        def unread() -> int:
            return arena.ask(lambda core: sum(len(conn.partial) + conn.control_bytes for conn in core.connections))

        assert unread() < 8 * MAX_UNREAD
        assert sent < 100_000_000, "the kernel holds the rest back"


def test_a_client_that_never_acknowledges_holds_its_queue_and_no_more() -> None:
    with Arena(queue_bytes=_QUEUE) as arena:
        silent = arena.dial("silent")
        silent.subscribe("bulk", qos=2)
        publisher = arena.dial("publisher")
        refused = 0
        for number in range(1, 60):
            publisher.send(Publish(topic="bulk", payload=bytes(50_000), qos=1, packet_id=number))
            refused += publisher.expect(Puback).reason is Reason.QUOTA_EXCEEDED
        assert refused > 30
        assert arena.ask(lambda core: core.queued_bytes) <= _QUEUE + 100_000
        arena.expect_drops("refused")


def test_a_client_that_reads_only_the_answers_to_its_subscriptions_holds_no_more_than_they_are() -> None:
    """SUBACKs overtake messages: a slow reader could ask for the retained messages again and again."""
    with Arena() as arena:
        publisher = arena.dial("publisher")
        # more than kernels keep for a socket, so that it takes a reader to come to the end
        publisher.send(*(Publish(topic=f"kept/{number}", payload=bytes(8_000), retain=True) for number in range(3_000)))
        until(lambda: arena.ask(lambda core: len(core.retained)) == 3_000, "the messages are kept")
        greedy = arena.dial("greedy", reads_little=True)
        wish = Subscription(filter="kept/#", qos=1)
        for packet_id in range(1, 4):
            greedy.send(Subscribe(packet_id=packet_id, subscriptions=(wish,) * 4_000))

        def walks() -> int:
            return arena.ask(lambda core: len(core.replays._walks.get(core.sessions["greedy"], ())))

        # while a SUBSCRIBE is taken in portions there may be none
        until(lambda: walks() > 0, "a replay has begun")
        assert walks() <= 1
        assert arena.ask(lambda core: core.queued_bytes) < 10_000_000


def test_all_slow_subscribers_together_are_bounded() -> None:
    total = 4_000_000
    with Arena(queue_bytes="none", queue_messages="none", queue_bytes_total=total) as arena:
        for number in range(4):
            arena.subscriber(f"stopped {number}", "bulk")
        publisher = arena.dial("publisher")
        packet = Publish(topic="bulk", payload=bytes(60_000))
        for _ in range(250):
            publisher.send(packet)
        arena.expect_drops("memory_full")
        assert arena.ask(lambda core: core.queued_bytes) < total + 1_000_000
