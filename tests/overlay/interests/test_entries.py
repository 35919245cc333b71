"""Entries as bytes: what was written is read, and what nobody may want is refused before memory is taken for it."""

from __future__ import annotations

import pytest

from tests.kits.interpreted import replaces_methods
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.interests import entries
from tieline.overlay.interests.entries import (
    Entry,
    Form,
    Said,
    Terms,
    entry_of,
    put_entry,
    put_said,
    read_entry,
    read_said,
)

PLAIN, SHARED = Entry("a/+"), Entry("a/#", "group")
CONDITIONAL, BOTH = Entry("a", "", "v > 3", 1 << 60), Entry("b/+", "g", 'w = "ä"', 7)
ALL = {PLAIN: Terms(0), SHARED: Terms(1, 3), CONDITIONAL: Terms(2), BOTH: Terms(1, 900)}


@pytest.mark.parametrize(
    "said",
    [
        Said(4, Form.WHOLE, 1 << 25, 0, ALL),
        Said(4, Form.WHOLE, 1, 0, {}),
        Said(255, Form.DELTA, 9, 7, {PLAIN: Terms(1)}, frozenset({SHARED, CONDITIONAL, BOTH})),
        Said(1, Form.REQUEST, 12),
    ],
)
def test_what_is_said_is_read(said: Said) -> None:
    assert read_said(put_said(said)) == said


def test_filters_of_the_same_names_are_one_entry_unless_they_name_a_group() -> None:
    assert entry_of("+/#") == entry_of("#")
    assert entry_of("/+/#") == entry_of("/#")
    assert entry_of("+/#", share="g") != entry_of("#", share="g")
    assert entry_of("a", condition=None, fingerprint=5) == Entry("a")


@pytest.mark.parametrize(
    "entry",
    [
        put(3) + put_bytes(b"a"),
        put(16) + put_bytes(b"a"),
        put(0) + put_bytes(b""),
        put(0) + put_bytes(b"a/#/b"),
        put(0) + put_bytes(b"/".join([b"a"] * 300)),
        put(0) + put_bytes(b"$share/g/a"),
        put(0) + put_bytes(b"\xff"),
        put(4) + put_bytes(b"a") + put_bytes(b"") + put(1),
        put(4) + put_bytes(b"a") + put_bytes(b"x/y") + put(1),
        put(4) + put_bytes(b"a") + put_bytes(b"+") + put(1),
        put(4) + put_bytes(b"a") + put_bytes(b"g") + put(0),
        put(8) + put_bytes(b"a") + put_bytes(b"") + put(1),
        put(8) + put_bytes(b"a") + put_bytes(b"v" * 100_000) + put(1),
        put(8) + put_bytes(b"a") + put_bytes(b"v > 1"),
    ],
)
def test_entries_that_nobody_can_have_made_are_refused(entry: bytes) -> None:
    with pytest.raises(BadFrame):
        read_entry(Reader(entry))


def test_bodies_that_nobody_can_have_made_are_refused() -> None:
    for body in (put(1, 9, 1), put(1, 2, 5, 5, 0, 0), put(1, 1, 5, 0, 77), put(1, 1, 5, 200), put(0, 1, 5, 0)):
        with pytest.raises(BadFrame):
            read_said(body)


@replaces_methods
def test_more_than_a_broker_may_want_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = put_said(Said(1, Form.WHOLE, 1, 0, {Entry(f"t/{number}"): Terms(1) for number in range(20)}))
    assert len(read_said(body).added) == 20
    monkeypatch.setattr(entries, "MOST_ENTRIES", 19)
    with pytest.raises(BadFrame, match="20 entries"):
        read_said(body)
    monkeypatch.setattr(entries, "MOST_ENTRIES", 20)
    monkeypatch.setattr(entries, "MOST_BYTES", 100)
    with pytest.raises(BadFrame, match="100 bytes"):
        read_said(body)


def test_an_entry_is_kept_as_it_travels() -> None:
    for entry, terms in ALL.items():
        assert read_entry(Reader(put_entry(entry, terms))) == (entry, terms)
