"""A session that arrives: what is held for it, while others at the same broker have it at once."""

from __future__ import annotations

from tests.kits.check_store import LateStore
from tests.kits.ledger import Model
from tests.kits.world import configured
from tieline.conf.schema import Settings
from tieline.core.broker import Broker
from tieline.core.client import Session
from tieline.core.durable import facts
from tieline.core.handover import SessionContents, Subscribed
from tieline.core.message import Message, Origin
from tieline.core.receiver import Grant
from tieline.overlay.frames.frame import lane_of
from tieline.overlay.joined import Joined
from tieline.overlay.sessions.errands import Claim, Complete, Errand, State, Subscriptions, Tail, TailEnd


def _commit(core: Broker, store: LateStore, model: Model) -> None:
    """Have everything so far permanent, and the store forget what nothing refers to."""
    core.journal.seal()
    before = store.committed
    for batch in store.batches[before : store.commit()]:
        for fact in batch:
            model.apply(fact)
    model.sweep()


def _session(core: Broker, client_id: str) -> Session:
    asked = Subscribed("t", 1, 0, ())
    return core.handovers.put_in(SessionContents(client_id, None, 3_600, None, (), (asked,), (), (), False), 1.0)


def test_what_was_held_is_known_to_the_store_when_all_others_are_done_with_it() -> None:
    """A broker that was killed after that could not begin again: rows referred to messages that were not there."""
    store, model = LateStore(), Model()
    core = Broker(configured(Settings(name="b1"), queue_messages=100), store=store, now=0.0)
    joined = Joined(core, life=1, incarnation=1)
    passages, old_home = joined.moves.passages, joined.node.number_of("b2")
    here, arriving = _session(core, "here"), _session(core, "arriving")
    passage = passages.arrive(arriving, 5, old_home, 1.0)
    passages.completed(passage, [old_home], [])
    lane, message, grant = lane_of(1, True, 0), Message(b"t", b"x", 1), Grant(here, 1)
    core.journal.queued(here, message, grant)
    passages.source = old_home, lane, 1
    passages._offered(passage, message, Grant(arriving, 1), 1.0)
    assert passage.held_bytes > 0
    _commit(core, store, model)
    core.journal.dropped(here, message, grant)  # it has had it
    _commit(core, store, model)
    passages.floor(passage, old_home, {}, 2.0)
    passages.tail_ended(passage, old_home, 2.0)
    _commit(core, store, model)
    queued = [fact for batch in store.batches for fact in batch if fact[0] == facts.QUEUE]
    assert len(queued) == 2, "it was let in"
    assert queued[1][2] in model.messages


def test_what_waits_for_the_mark_of_a_broker_that_is_gone_for_good_is_passed_on() -> None:
    core = Broker(configured(Settings(name="b1"), queue_messages=100), now=0.0)
    joined = Joined(core, life=1, incarnation=1)
    passages, number_of = joined.moves.passages, joined.node.number_of
    gone, next_home, session = number_of("b2"), number_of("b3"), _session(core, "s")
    said: list[Errand] = []
    passages._tell = lambda broker, errand, message: said.append(errand)
    passage = passages.leave(session, 7, next_home, 1.0)
    passages.left(passage, ())
    passages.source = gone, lane_of(1, True, 0), 1
    passages._offered(passage, Message(b"t", b"x", 1), Grant(session, 1), 1.0)
    assert [held.message.payload for held in passage.held] == [b"x"]
    assert gone in joined.moves.post.origins, "it may come back"
    joined.writing_off.begin(gone)
    assert gone not in joined.moves.post.origins
    assert not passage.held
    assert [type(errand) for errand in said] == [Tail, TailEnd]


def test_a_session_of_which_a_part_has_come_is_given_away_when_it_is_whole() -> None:
    """It went on to the next broker without the subscriptions that were in the next frame."""
    core = Broker(configured(Settings(name="b1"), queue_messages=100), now=0.0)
    joined = Joined(core, life=1, incarnation=1)
    moves, number_of = joined.moves, joined.node.number_of
    old_home, next_home = number_of("b2"), number_of("b3")
    moves.post.now = 1.0
    moves._run(State("s", 1_000, None, 3_600, None, (), 0), b"", old_home, 1.0)
    moves._run(Claim("s", None, 2_000, "b3", 0), b"", next_home, 1.0)
    assert "s" in core.sessions
    moves._run(Subscriptions("s", 1_000, [("t", 1, 0, ())]), b"", old_home, 1.0)
    core.timers.fire(1.2)
    assert "s" in core.sessions, "there may be more"
    moves._run(Complete("s", 1_000, []), b"", old_home, 1.3)
    core.timers.fire(1.4)
    assert "s" not in core.sessions
    passage = moves.passages.leaving["s", 2_000]
    assert [each.filter for each in passage.subscriptions] == ["t"]


def test_what_a_publisher_sent_before_it_moved_goes_first_however_it_comes() -> None:
    """What it had sent to a broker with a mark waited here, and what it sent to the next one came with the tail."""
    store, model = LateStore(), Model()
    core = Broker(configured(Settings(name="b1"), queue_messages=100), store=store, now=0.0)
    joined = Joined(core, life=1, incarnation=1)
    passages, number_of = joined.moves.passages, joined.node.number_of
    old_home, first, second = number_of("b2"), number_of("b3"), number_of("b4")
    session, grant = _session(core, "s"), (1, b"", "")
    passage = passages.arrive(session, 5, old_home, 1.0)
    passages.completed(passage, [old_home, first, second], [])
    passages.floor(passage, first, {}, 1.0)

    def sent(payload: bytes, moves: int, *, client: str = "p") -> Message:
        return Message(b"t", payload, 1, origin=Origin(client).moved(moves))

    def straight(origin: int, message: Message) -> None:
        passages.source = origin, lane_of(1, True, 0), int(message.payload)
        passages._offered(passage, message, Grant(session, 1), 1.0)

    straight(first, sent(b"1", 0))
    straight(first, sent(b"2", 0))
    straight(second, sent(b"5", 1))
    # before the mark of that one; and of somebody who has not moved
    passages.let_in(passage, second, sent(b"3", 1), grant, 1.0)
    passages.let_in(passage, second, sent(b"4", 1), grant, 1.0)
    passages.let_in(passage, second, sent(b"0", 0, client="q"), grant, 1.0)
    expected = [b"1", b"2", b"3", b"4", b"5"]
    assert [held.message.payload for held in passage.held] == expected
    _commit(core, store, model)
    notes = [(key, value) for key, value in model.state.tables["note"] if key[0] in b"PRH"]
    (again,) = passages._notes.read(notes, 1.0)
    assert [held.message.payload for held in again.held] == expected
    passages.floor(passage, old_home, {}, 2.0)
    passages.floor(passage, second, {lane_of(1, True, 0): 4}, 2.0)
    passages.advanced(second, lane_of(1, True, 0), 4, 2.0)
    for origin in (old_home, first, second):
        passages.tail_ended(passage, origin, 2.0)
    assert not passage.held
    queued = [item for item, _ in session.queue.entries]
    assert [item.payload for item in queued if isinstance(item, Message)] == [b"0", *expected]
