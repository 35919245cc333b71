"""Names and numbers: everybody has its own, and translates what others mean by theirs."""

from __future__ import annotations

import pytest

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.hello import Refused
from tieline.overlay.links.directory import MOST_BROKERS, Directory, Translation


def test_a_name_gets_the_next_number_and_keeps_it() -> None:
    directory = Directory({1: "north"})
    assert (directory.find("south"), directory.add("south")) == (None, 2)
    again = Directory(directory.names)
    assert (again.find("north"), again.find("south"), again.add("east")) == (1, 2, 3)
    assert directory.find("east") is None


def test_there_are_no_more_numbers_than_fit_into_a_byte() -> None:
    directory = Directory({})
    for number in range(MOST_BROKERS):
        assert directory.add(f"b{number}") == number + 1
    with pytest.raises(Refused, match="one more than the 255"):
        directory.add("late")


def test_a_number_of_theirs_means_one_broker_as_long_as_a_connection_lasts() -> None:
    translation = Translation()
    translation.learn({1: 2, 7: 1})
    translation.learn({1: 2, 3: 9})
    assert [translation.table[theirs] for theirs in (1, 3, 7, 8)] == [2, 9, 1, 0]
    with pytest.raises(BadFrame, match="two meanings"):
        translation.learn({7: 3})
