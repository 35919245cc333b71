"""What a broker on a ring has noted is what its next life begins with."""

from __future__ import annotations

from tieline.overlay.ring.events import Event
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.promises import Batch, Taken
from tieline.overlay.ring_member.notes import RingNotes


class _Store:
    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}

    def keep(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            del self.kept[key]
        else:
            self.kept[key] = value

    def life(self, incarnation: int = 1, most: int = 10) -> RingNotes:
        return RingNotes([(b"L", b"of a group"), *self.kept.items()], incarnation, self.keep, most)


def test_a_first_life_has_not_lived_and_keeps_its_incarnation() -> None:
    store = _Store()
    assert not store.life(7).ends.has_lived
    again = store.life(8).ends
    assert again.has_lived
    assert again.incarnation == 7


def test_what_is_owed_and_not_settled_is_owed_again_in_order() -> None:
    store = _Store()
    notes = store.life()
    batches = [Batch(27, number, (Event("a/b", bytes((number,)), "t", (0.5, 1.5)),)) for number in (1, 2, 200)]
    for batch in batches:
        notes.owe(batch)
    notes.settle(batches[1])
    ends = store.life().ends
    assert ends.owed == (batches[0], batches[2])
    assert ends.numbers[27] >= 200, "no number is given out twice"


def test_numbers_are_set_aside_by_the_thousand() -> None:
    store = _Store()
    notes = store.life()
    for number in range(1, 100):
        notes.owe(Batch(1, number, ()))
        notes.settle(Batch(1, number, ()))
    assert len(store.kept) == 2


def test_of_what_was_taken_the_oldest_is_forgotten() -> None:
    store = _Store()
    notes = store.life(most=2)
    for origin in (1, 2, 3):
        notes.take(Taken(origin, 5, 27, 10 * origin))
    notes.take(Taken(2, 5, 27, 21))
    assert store.life().ends.positions == {(2, 5, 27): 21, (3, 5, 27): 30}


def test_who_stands_behind_is_noted_when_it_changes() -> None:
    store = _Store()
    notes = store.life()
    notes.know((Peer(1, "peer://a:1"), Peer(2, "peer://b:1")))
    notes.know(())
    assert store.life().peers == (Peer(1, "peer://a:1"), Peer(2, "peer://b:1"))
