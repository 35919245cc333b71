"""The covering paper's Figures 2 and 3: which cluster head knows which subscription.

The figures are drawings that the text describes; the interests here are chosen so that exactly the covering relations
of the text hold.  Every head has one forest for its one upstream link.
"""

from __future__ import annotations

import pytest

from tieline.match.box import Box
from tieline.match.cover.forest import Changes, Forest, Mode
from tieline.match.cover.interests import Interest


class Head:
    """A cluster head: what it knows, and what it tells the head above it."""

    def __init__(self, mode: Mode, above: Head | None = None) -> None:
        self.known: dict[object, Interest] = {}
        self.above = above
        self.forest = Forest(mode)
        #: Everything that it told the head above, in order.
        self.told: list[tuple[str, Interest]] = []

    def subscribe(self, sender: object, interest: Interest) -> None:
        self.known[sender, interest] = interest
        self.tell(self.forest.add((sender, interest), interest))

    def cancel(self, sender: object, interest: Interest) -> None:
        del self.known[sender, interest]
        self.tell(self.forest.remove((sender, interest)))

    def tell(self, changes: Changes) -> None:
        if self.above is None:
            return
        for interest in changes.forward:
            self.told.append(("forward", interest))
            self.above.subscribe(self, interest)
        for interest in changes.cancel:
            self.told.append(("cancel", interest))
            self.above.cancel(self, interest)

    @property
    def interests(self) -> set[Interest]:
        return set(self.known.values())


def temperature(lo: float, hi: float) -> Interest:
    return Interest("field/+/air", "air", Box((lo,), (hi,)))


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_figure_2_subscribing(mode: Mode) -> None:
    s1, s2 = temperature(0, 50), temperature(10, 20)
    s3, s4 = temperature(60, 90), temperature(70, 80)
    r3 = Head(mode)
    r1, r2 = Head(mode, r3), Head(mode, r3)
    r1.subscribe("C1", s1)
    assert r3.interests == {s1}, "S1 has a copy on each head upstream"
    r1.subscribe("C2", s2)
    r2.subscribe("C3", s3)
    r2.subscribe("C4", s4)
    assert r1.interests == {s1, s2}
    assert r2.interests == {s3, s4}
    assert r3.interests == {s1, s3}, "S1 covers S2 and S3 covers S4, so neither goes further"
    # Cancelling what was never forwarded is not forwarded.
    r1.cancel("C2", s2)
    assert r1.told == [("forward", s1)]
    # Cancelling what covered another exposes that one first.
    r2.cancel("C3", s3)
    assert r2.told == [("forward", s3), ("forward", s4), ("cancel", s3)]
    assert r3.interests == {s1, s4}


#: S2 covers S1, S3 covers S1, S4 covers S3, and nothing else covers anything.
S1, S2, S3, S4 = temperature(20, 30), temperature(0, 30), temperature(20, 50), temperature(15, 60)


def test_the_relations_of_figure_3() -> None:
    pairs = {(a, b) for a in (S1, S2, S3, S4) for b in (S1, S2, S3, S4) if a is not b and a.covers(b)}
    assert pairs == {(S2, S1), (S3, S1), (S4, S3), (S4, S1)}, "the last one follows from S4 over S3 over S1"


def chain(mode: Mode) -> tuple[Head, Head, Head]:
    """The lowest head, the one above it, and the core."""
    core = Head(mode)
    middle = Head(mode, core)
    return Head(mode, middle), middle, core


def test_figure_3_unsubscribing_suboptimally() -> None:
    lowest, middle, core = chain("suboptimal")
    for client, interest in zip(("C1", "C2", "C3", "C4"), (S1, S2, S3, S4), strict=True):
        lowest.subscribe(client, interest)
    assert middle.interests == core.interests == {S1, S2, S3, S4}, "each came before what covers it"
    lowest.cancel("C4", S4)
    assert lowest.interests == middle.interests == core.interests == {S1, S2, S3}, "no garbage on any head"
    assert lowest.told[-1] == middle.told[-1] == ("cancel", S4), "upstream has its own copy of S3 and needs no other"


def test_figure_3_unsubscribing_optimally() -> None:
    lowest, middle, core = chain("optimal")
    for client, interest in zip(("C1", "C2", "C3", "C4"), (S1, S2, S3, S4), strict=True):
        lowest.subscribe(client, interest)
    assert middle.interests == core.interests == {S2, S4}
    lowest.cancel("C4", S4)
    assert middle.interests == core.interests == {S2, S3}
    assert lowest.told[-2:] == middle.told[-2:] == [("forward", S3), ("cancel", S4)]


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_the_case_in_words_s4_and_s3_in_sequence(mode: Mode) -> None:
    lowest, middle, core = chain(mode)
    lowest.subscribe("C4", S4)
    lowest.subscribe("C3", S3)
    assert middle.interests == core.interests == {S4}
    lowest.cancel("C4", S4)
    assert middle.interests == core.interests == {S3}, "S4 is garbage nowhere, S3 is missing nowhere"
    lowest.cancel("C3", S3)
    assert not middle.interests and not core.interests


def test_the_core_knows_less_than_the_edge() -> None:
    # Theorem 1: the closer to the core, the smaller the subscription table, as far as interests cover each other.
    core = Head("optimal")
    middles = [Head("optimal", core) for _ in range(2)]
    edges = [Head("optimal", middles[n % 2]) for n in range(6)]
    for n, edge in enumerate(edges):
        edge.subscribe("wide", temperature(10 * (n % 4), 30 + 10 * (n % 4)))
        for client in range(5):
            edge.subscribe(client, temperature(10 * (n % 4) + client, 20 + 10 * (n % 4)))
    sizes = [sum(len(head.known) for head in layer) for layer in (edges, middles, [core])]
    assert sizes == [36, 6, 4]
