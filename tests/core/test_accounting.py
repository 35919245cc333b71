"""Every message is accounted for: published = delivered + waiting + dropped with a name, whatever happens."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.check_store import LateStore
from tests.kits.examples import examples
from tests.kits.world import Client, World, configured
from tieline.conf.schema import Class, Settings
from tieline.core.account import NO_LEVEL, ON_ARRIVAL, Drop
from tieline.wire.packets import Puback, Publish, Pubrec
from tieline.wire.reason import Reason

#: What was sent before it was dropped: counted as delivered, and named beside.
AFTERWARDS = frozenset({Drop.REJECTED, Drop.UNCONFIRMED})
CLASSES = tuple(Class(name=f"class-{level}", filter=f"{level}/#", level=level) for level in range(4))


def small(full: str, **options: Any) -> Settings:
    """Four classes, and queues that are soon full."""
    made = configured(queue_messages=6, inflight=2, full=full, **options)
    return msgspec.structs.replace(made, class_=CLASSES)


class Kept(World):
    """A world with a store: it commits when everything else has happened, and what waited for that follows."""

    def __init__(self, made: Settings) -> None:
        self._store = LateStore()
        super().__init__(made, store=self._store)

    def settle(self) -> None:
        super().settle()
        while self._store.committed < len(self._store.batches):
            self.broker.committed(self._store.commit())
            super().settle()


class Ledger:
    """A world whose publisher and subscribers keep their own books."""

    def __init__(self, full: str, *, is_kept: bool = False) -> None:
        self.world = Kept(small(full)) if is_kept else World(small(full))
        # with a session that is kept, QoS 2 is routed after a commit
        self.publisher = self.world.durable("p") if is_kept else self.world.client("p")
        self.readers: dict[str, Client] = {}
        self.subscribed: set[str] = set()
        self.owed = self.delivered = self.refused = 0
        self.answered: Counter[str] = Counter()

    def subscribe(self, number: int, qos: int, is_kept: bool) -> None:
        name = f"r{number}"
        reader = self.readers.get(name)
        if reader is None or not reader.is_open:
            reader = self.world.durable(name) if is_kept else self.world.client(name)
            self.readers[name] = reader
            if not reader.connack.session_present:
                self.subscribed.discard(name)
        if reader.is_reading and name not in self.subscribed:
            reader.subscribe("#", qos=qos)
            self.subscribed.add(name)
        self.collect()

    def publish(self, level: int, qos: int, messages: int, expiry_s: int) -> None:
        properties = {"message_expiry_interval": expiry_s} if expiry_s else {}
        receivers = len(self.subscribed)
        if not qos and not expiry_s:
            self.publisher.send(*(Publish(topic=f"{level}/x", payload=b"%03d" % n) for n in range(messages)))
            self.owed += receivers * messages
        else:
            for _ in range(messages):
                reason = self.publisher.publish(f"{level}/x", b"y", qos, **properties)
                if reason is Reason.QUOTA_EXCEEDED:
                    self.refused += 1
                else:
                    self.owed += receivers
        self.collect()

    def acknowledge(self, number: int, is_wanted: bool) -> None:
        reader = self.readers.get(f"r{number}")
        if reader is None or not reader.is_open or not reader.is_reading:
            return
        session = self.world.broker.sessions[f"r{number}"]
        for packet_id, flight in list(session.inflight.items()):
            if flight is not None:
                kind = Puback if flight[2] == 1 else Pubrec
                reason = Reason.SUCCESS if is_wanted else Reason.UNSPECIFIED_ERROR
                self.answered["yes" if is_wanted else "no"] += 1
                reader.send(kind(packet_id=packet_id, reason=reason))
        self.collect()

    def leave(self, number: int) -> None:
        reader = self.readers.get(f"r{number}")
        if reader is not None and reader.is_open:
            reader.drop()
            if f"r{number}" not in self.world.broker.sessions:
                self.subscribed.discard(f"r{number}")
        self.collect()

    def collect(self) -> None:
        for reader in self.readers.values():
            for packet in reader.take():
                self.delivered += isinstance(packet, Publish) and not packet.dup

    def check(self) -> None:
        broker = self.world.broker
        drops = broker.account.drops
        waiting = sum(session.queue.messages for session in broker.sessions.values())
        lost = sum(count for why, count in drops.items() if why not in ON_ARRIVAL | AFTERWARDS)
        assert self.owed == self.delivered + waiting + lost, dict(drops)
        assert drops[Drop.REFUSED] == self.refused
        assert drops[Drop.REJECTED] == self.answered["no"]
        # the same numbers by class, and one record for each
        by_level = sum(broker.account.drops_by_level, Counter())
        assert by_level == drops
        assert not broker.account.drops_by_level[NO_LEVEL]
        if drops.total() <= broker.account.RING:
            records: Counter[Drop] = Counter()
            for record in broker.account.last_drops:
                records[record.why] += record.messages
                assert record.topic == f"{record.level}/x" and record.age_s >= 0 and record.client.startswith("r")
            assert records == drops


steps = st.one_of(
    st.tuples(st.just("subscribe"), st.integers(0, 2), st.integers(0, 2), st.booleans()),
    st.tuples(
        st.just("publish"), st.integers(0, 3), st.integers(0, 2), st.integers(1, 9), st.sampled_from((0, 0, 1, 100))
    ),
    st.tuples(st.just("acknowledge"), st.integers(0, 2), st.booleans()),
    st.tuples(st.sampled_from(("leave", "stall", "resume")), st.integers(0, 2)),
    st.tuples(st.just("advance"), st.sampled_from((0.2, 2.0, 4_000.0))),
)


@examples(80)
@given(st.lists(steps, min_size=5, max_size=60), st.sampled_from(("refuse", "oldest")), st.booleans())
def test_published_is_delivered_or_waits_or_has_a_name(
    story: list[tuple[Any, ...]], full: str, has_store: bool
) -> None:
    ledger = Ledger(full, is_kept=has_store)
    for action, *rest in story:
        if action in {"stall", "resume"}:
            reader = ledger.readers.get(f"r{rest[0]}")
            if reader is not None and reader.is_open:
                getattr(reader, action)()
        elif action == "advance":
            ledger.world.advance(rest[0])
            ledger.subscribed &= ledger.world.broker.sessions.keys()
        else:
            getattr(ledger, action)(*rest)
        ledger.collect()
        ledger.check()


@pytest.mark.parametrize("has_store", [False, True])
def test_overload_has_victims_of_every_class_and_all_are_named(has_store: bool) -> None:
    ledger = Ledger("oldest", is_kept=has_store)
    for number, qos in enumerate((0, 1, 2)):
        ledger.subscribe(number, qos, is_kept=number > 0)
    for reader in ledger.readers.values():
        reader.stall()
    for level in (0, 1, 2, 3, 3, 2, 1, 0):
        for qos in (0, 1, 2):
            ledger.publish(level, qos, 20, expiry_s=0)
            ledger.check()
    ledger.leave(2)
    ledger.publish(1, 0, 20, expiry_s=0)
    ledger.leave(0)
    ledger.check()
    drops = ledger.world.broker.account.drops
    assert {Drop.QUEUE_FULL, Drop.OFFLINE, Drop.SESSION_ENDED} <= drops.keys()
    assert all(ledger.world.broker.account.drops_by_level[level] for level in range(4))
