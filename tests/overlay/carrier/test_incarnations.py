"""Which incarnation of a broker counts, and what its streams and those to it do when another one does."""

from __future__ import annotations

from tieline.overlay.carrier.durable import Ends, Renewed
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.frames.frame import tag_of


def test_an_incarnation_that_is_new_is_not_used_before_it_is_committed() -> None:
    incarnations = Incarnations(1, 1, Ends())
    assert not incarnations.is_usable(2)
    assert incarnations.heard(2, 22, 5)
    assert incarnations.heard(2, 23, 6)
    assert not incarnations.committed(2) and not incarnations.is_usable(2)
    assert incarnations.committed(2) and incarnations.is_usable(2)
    assert not incarnations.heard(2, 23, 7)
    assert (incarnations.last(2), incarnations.tags[2], incarnations.life_tags[2]) == (23, tag_of(23), tag_of(7))


def test_what_was_committed_is_known_at_once() -> None:
    ends = Ends()
    ends.apply([Renewed(2, 22, 5), Renewed(2, 23, 6)])
    incarnations = Incarnations(1, 1, ends)
    assert incarnations.is_usable(2) and not incarnations.heard(2, 23, 6)
    assert incarnations.heard(2, 22, 9) and incarnations.known[2] == (23, 22)


def test_tags_of_neighbouring_lives_differ() -> None:
    assert len({tag_of(life) for life in range(1_000)}) == 1_000
