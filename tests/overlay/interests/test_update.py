"""An interest of very many entries is read, compared and taken in a little at a time."""

from __future__ import annotations

from tests.kits.lines import counting
from tieline.overlay.interests.entries import Entry, Form, Said, Terms, put_said
from tieline.overlay.interests.interests import Interests
from tieline.overlay.interests.update import InterestUpdate, Phase

#: Entries of one interest, and lines of Python of one step, at most: a millisecond or two.
VERY_MANY, MOST = 8_000, 6_000
OTHER = 2


def _taught(interests: Interests, said: Said) -> int:
    """Have something learned; the most lines that one step of it took."""
    update = InterestUpdate(put_said(said), interests, {})
    most = 0
    while update.phase is not Phase.OVER:
        with counting() as lines:
            update.step()
        most = max(most, lines.count)
    assert update.was_news
    return most


def _step_until(update: InterestUpdate, phase: Phase) -> None:
    while update.phase is not phase:
        update.step()


def _whole(version: int, what: str) -> Said:
    wanted = {Entry(f"{what}/{number}/+"): Terms(1) for number in range(VERY_MANY)}
    return Said(OTHER, Form.WHOLE, version, 0, wanted)


def test_others_have_their_turn_however_much_is_new_and_gone() -> None:
    interests = Interests(1, 1, {})
    first, second = _whole(1, "a"), _whole(2, "b")
    assert _taught(interests, first) <= MOST
    assert _taught(interests, second) <= MOST
    assert interests.known[OTHER] == (2, second.added)
    gone = Said(OTHER, Form.DELTA, 3, 2, {}, frozenset(second.added))
    assert _taught(interests, gone) <= MOST
    assert interests.known[OTHER] == (3, {})
    assert not interests.wanted_by("b/7/x")


def test_a_broker_that_is_written_off_in_the_middle_of_an_update_ends_nothing() -> None:
    interests = Interests(1, 1, {})
    _taught(interests, _whole(1, "a"))
    update = InterestUpdate(put_said(_whole(2, "b")), interests, {})
    _step_until(update, Phase.SHRINKING)
    interests.write_off(OTHER)
    _step_until(update, Phase.OVER)
    assert interests.known[OTHER] == (2, {})
    assert interests.kept_bytes == 0
