"""A session that has left: what is acknowledged for it is permanent, and its client is let in whoever dies."""

from __future__ import annotations

from tests.kits.check_store import LateStore
from tests.kits.ledger import Model
from tests.kits.world import configured
from tieline.conf.schema import Settings
from tieline.core.broker import Broker
from tieline.core.client import Connection, Hold
from tieline.core.handover import SessionContents, Subscribed
from tieline.overlay.frames.frame import ERRANDS
from tieline.overlay.interests.entries import Entry, Form, Said, Terms
from tieline.overlay.joined import Joined
from tieline.overlay.sessions.claims import WAIT_S
from tieline.overlay.sessions.errands import (
    Claim,
    Complete,
    Declined,
    Done,
    Errand,
    Homes,
    Mark,
    Marked,
    Ready,
    State,
    Subscriptions,
    Tail,
    TailEnd,
    put_errand,
    read_errand,
)
from tieline.overlay.sessions.registry import KEPT, digest_of
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connack, Connect, Packet, Puback, Publish
from tieline.wire.properties import Properties


class _Place:
    """One broker with a store that commits when it is told to, and what it knows of two others."""

    def __init__(self, model: Model | None = None) -> None:
        self.store, self.model = LateStore(), model or Model()
        self.core = Broker(configured(Settings(name="b1"), queue_messages=100), store=self.store, now=0.0)
        state = self.model.state
        self.joined = Joined(self.core, life=1, incarnation=1, notes=state.tables["note"])
        self.core.restore(state, 1.0)
        self.moves = self.joined.moves
        self.moves.post.now = 1.0
        self.number_of = self.joined.node.number_of
        self._framers: dict[Connection, Framer] = {}

    def keep(self, client_id: str, filter_: str) -> None:
        """A session whose client is away."""
        asked = Subscribed(filter_, 2, 0, ())
        session = self.core.handovers.put_in(
            SessionContents(client_id, None, 3_600, None, (), (asked,), (), (), False), 1.0
        )
        self.moves._keep(session.client_id, 1_000)

    def connect(self, client_id: str, now: float = 1.0) -> Connection:
        conn = self.core.open(now, listener="tcp", peer=client_id)
        self._framers[conn] = Framer(1_000_000, 5)
        properties = Properties({"session_expiry_interval": 3_600})
        self.send(conn, Connect(version=5, client_id=client_id, clean_start=False, keep_alive=0, properties=properties))
        return conn

    def send(self, conn: Connection, packet: Packet, now: float = 1.0) -> None:
        self.core.receive(conn, encode(packet, 5), now)
        self.seal(now)

    def seal(self, now: float = 1.0) -> None:
        self.joined.end_turn(now)
        self.core.journal.seal()

    def commit(self, now: float = 1.0) -> None:
        """Have everything permanent, and say so."""
        self.seal(now)
        self.write()
        self.core.committed(self.store.committed)
        self.core.timers.fire(now)
        self.seal(now)

    def take(self, source: int, now: float, *errands: Errand) -> None:
        """Take errands of another broker, each in a turn of its own."""
        for errand in errands:
            self.core.work.enough()
            assert self.moves.take(source, [put_errand(errand)], now) == 1

    def write(self) -> None:
        """Have everything that was submitted permanent, as seen by whoever comes after this broker."""
        before = self.store.committed
        for batch in self.store.batches[before : self.store.commit()]:
            for fact in batch:
                self.model.apply(fact)
        self.model.sweep()

    def heard(self, conn: Connection, now: float = 1.0) -> list[type[Packet]]:
        """What a client is sent now."""
        data = b"".join(self.core.fill(conn, 65_536, now))
        return [type(packet) for packet in self._framers[conn].feed(data)]

    def errands(self, name: str) -> list[type]:
        """What is owed to another broker about sessions."""
        owing = self.joined.node.carrier.sender.outgoing[self.number_of(name), ERRANDS].owing
        return [type(read_errand(parcel)[0]) for parcel in owing.unsettled.values()]

    def tails(self, name: str) -> int:
        """Messages that are owed to another broker because a session went there."""
        return self.errands(name).count(Tail)


def test_what_is_published_for_a_session_that_has_left_is_permanent_before_it_is_acknowledged() -> None:
    """It was owed to the new home in the batch of the turn, and PUBACK did not wait for that."""
    place = _Place()
    place.keep("s", "t")
    publisher = place.connect("p")
    place.commit()
    assert place.heard(publisher) == [Connack]
    place.take(place.number_of("b2"), 1.0, Claim("s", None, 2_000, "b2", 0))
    place.seal()
    place.commit()
    assert "s" not in place.core.sessions
    place.send(publisher, Publish(topic="t", payload=b"x", qos=1, packet_id=1))
    assert place.tails("b2") == 1
    assert place.heard(publisher) == []
    place.commit()
    assert place.heard(publisher) == [Puback]


def test_what_was_accepted_and_not_routed_finds_sessions_that_have_left() -> None:
    """It was routed before it was known again that they had been here."""
    place = _Place()
    place.keep("s", "t")
    publisher = place.connect("p")
    place.commit()
    place.take(place.number_of("b2"), 1.0, Claim("s", None, 2_000, "b2", 0))
    place.commit()
    place.send(publisher, Publish(topic="t", payload=b"x", qos=2, packet_id=1))
    place.write()  # and it dies
    assert place.model.unrouted
    after = _Place(place.model)
    after.seal()
    assert after.tails("b2") == 1
    after.commit()
    assert not after.model.unrouted


def test_a_client_is_let_in_when_its_old_home_dies_before_it_says_so() -> None:
    """It was held for ever, at this broker."""
    place = _Place()
    home = place.number_of("b2")
    place.take(home, 1.0, Homes(True, [(digest_of("c"), 1_000, KEPT)]))
    conn = place.connect("c")
    assert conn.hold is Hold.HOME
    epoch = place.moves.claims.pending["c"].epoch
    state, complete = State("c", epoch, None, 3_600, None, (), 0), Complete("c", epoch, [])
    place.take(home, 1.5, state, complete)
    place.commit(1.5)
    assert place.heard(conn) == []
    place.commit(1.5 + WAIT_S)
    for _ in range(3):
        place.commit(1.6 + WAIT_S)
    assert place.heard(conn) == [Connack]
    assert not place.moves.claims.pending
    assert place.joined.node.counts.order_not_awaited == 1


def test_a_client_that_goes_on_waits_for_what_it_published_two_brokers_ago() -> None:
    place = _Place()
    home, next_home = place.number_of("b2"), place.number_of("b3")
    place.take(home, 1.0, Homes(True, [(digest_of("c"), 1_000, KEPT)]))
    place.connect("c")
    epoch = place.moves.claims.pending["c"].epoch
    state, complete = State("c", epoch, None, 3_600, None, (), 0), Complete("c", epoch, [])
    place.take(home, 1.1, state, complete)
    place.commit(1.1)
    place.take(next_home, 1.2, Claim("c", None, epoch + 1, "b3", 0))
    for _ in range(3):
        place.commit(1.2)
    assert place.moves._departures.is_waiting
    place.take(home, 1.3, Ready("c", epoch))
    place.seal(1.3)
    assert not place.moves._departures.is_waiting


def test_that_an_earlier_mark_has_come_is_known_to_the_next_life() -> None:
    """The mark of an origin was never asked for, and what it had sent was held for a day."""
    place = _Place()
    home = place.number_of("b2")
    place.number_of("b3")
    state, complete = State("c", 2_000, None, 3_600, None, (), 0), Complete("c", 2_000, ["b3"])
    place.take(home, 1.0, state, complete)
    place.take(home, 1.0, Marked("c", 2_000, "b3"))
    place.commit()
    after = _Place(place.model)
    (passage,) = after.moves.passages.arriving.values()
    assert not passage.part(after.number_of("b3")).is_deferred


def test_a_session_that_is_on_its_way_answers_a_later_claim() -> None:
    """Its new home had been killed meanwhile, was told that there is none, and began another one."""
    place = _Place()
    home = place.number_of("b2")
    place.take(home, 1.0, Homes(True, [(digest_of("c"), 1_000, KEPT)]))
    conn = place.connect("c")
    # claimed by an earlier life
    epoch = place.moves.claims.pending["c"].epoch - 1
    place.take(home, 1.1, State("c", epoch, None, 3_600, None, (), 0), Complete("c", epoch, []), Ready("c", epoch))
    for _ in range(3):
        place.commit(1.1)
    assert place.heard(conn) == [Connack]
    assert not place.moves.claims.pending


def test_who_has_sent_a_session_declines_no_later_claim_of_its_new_home() -> None:
    place = _Place()
    place.keep("s", "t")
    place.take(place.number_of("b2"), 1.0, Claim("s", None, 2_000, "b2", 0))
    place.seal()
    place.take(place.number_of("b2"), 1.0, Claim("s", None, 3_000, "b2", 0), Claim("t", None, 3_000, "b2", 0))
    place.seal()
    assert place.errands("b2").count(Declined) == 1, "of the other one"


def test_a_session_that_lost_before_it_came_is_handed_on_when_it_is_whole() -> None:
    """Two brokers had a session of one client, and each collected what it was subscribed to."""
    place = _Place()
    home, winner = place.number_of("b2"), place.number_of("b3")
    place.take(home, 1.0, State("c", 2_000, None, 3_600, None, (), 0))
    place.take(winner, 1.0, Homes(True, [(digest_of("c"), 3_000, KEPT)]))
    assert "c" in place.core.sessions, "not everything is here"
    place.take(home, 1.0, Complete("c", 2_000, []))
    for origin in ("b1", "b2", "b3"):
        place.take(home, 1.1, TailEnd("c", 2_000, origin))
    for number in (home, winner):
        place.take(number, 1.1, Mark("c", 2_000, {}))
    place.commit(1.1)
    place.commit(1.2)
    assert "c" not in place.core.sessions
    assert place.moves.registry.epoch("c") == 0


def test_a_session_that_has_come_back_is_kept_by_the_next_life_though_its_journeys_were_not_over() -> None:
    """It was taken for one that had left, lost against its own past when the last of it came, and was taken out."""
    place = _Place()
    place.keep("s", "t")
    other = place.number_of("b2")
    place.take(other, 1.0, Claim("s", None, 2_000, "b2", 0), Homes(True, [(digest_of("s"), 2_000, KEPT)]))
    place.commit()
    conn = place.connect("s")
    epoch = place.moves.claims.pending["s"].epoch
    state, asked = State("s", epoch, None, 3_600, None, (), 1), Subscriptions("s", epoch, [("t", 2, 0, ())])
    place.take(other, 1.1, state, asked, Complete("s", epoch, []), Ready("s", epoch))
    for _ in range(3):
        place.commit(1.1)
    assert place.heard(conn) == [Connack]
    moves = place.moves
    assert len(moves.passages.arriving) == len(moves.passages.leaving) == 1
    # and the broker begins again
    after = _Place(place.model)
    for origin in ("b1", "b2"):
        after.take(other, 1.2, TailEnd("s", epoch, origin))
    after.take(other, 1.2, Mark("s", epoch, {}))
    for _ in range(3):
        after.commit(1.2)
    assert not after.moves.passages.arriving
    assert list(after.core.sessions["s"].subscriptions) == ["t"]
    assert after.moves.registry.epoch("s") == moves.registry.epoch("s") > epoch
    back = after.connect("s")
    after.commit(1.2)
    assert after.heard(back) == [Connack]


def test_whoever_ends_in_the_middle_of_a_chain_lets_the_home_before_go() -> None:
    """It stood in for the session for a day."""
    place = _Place()
    home, next_home = place.number_of("b2"), place.number_of("b3")
    place.take(home, 1.0, State("c", 2_000, None, 3_600, None, (), 0), Complete("c", 2_000, []))
    place.take(next_home, 1.0, Claim("c", None, 3_000, "b3", 0))
    place.seal()
    place.take(next_home, 1.0, Done("c", 3_000))
    place.seal()
    assert Done in place.errands("b2")
    assert not len(place.moves.passages)


def test_a_broker_that_is_gone_is_not_waited_for_and_that_is_counted() -> None:
    place = _Place()
    gone = place.number_of("b3")
    place.keep("p", "x")
    entry = Said(gone, Form.WHOLE, 1, 0, {Entry("t"): Terms(2)})
    place.joined.node.interests.learn(entry)
    publisher = place.connect("p")
    place.commit()
    place.send(publisher, Publish(topic="t", payload=b"x", qos=1, packet_id=1))
    place.commit()
    place.seal(1.0)
    now = 1.0 + WAIT_S
    place.seal(now)
    place.moves.take(place.number_of("b2"), [put_errand(Claim("p", None, 90_000, "b2", 0))], now)
    for _ in range(4):
        place.commit(now)
    assert Ready in place.errands("b2")
    assert place.joined.node.counts.order_not_awaited == 1
