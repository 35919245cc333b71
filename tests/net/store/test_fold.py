from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.ledger import Life, comparable
from tieline.core.durable import facts
from tieline.core.durable.facts import STATE
from tieline.core.ports import Fact
from tieline.net.store.database import journal_row, replay, rows
from tieline.net.store.fold import Fold
from tieline.net.store.schema import prepare

NOWHERE = Path("nowhere")


def database() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    prepare(db, 0.0)
    return db


@given(seed=st.integers(0, 1 << 32), sizes=st.lists(st.integers(1, 12), max_size=25), writes=st.integers(0, 1 << 25))
def test_rows_are_what_the_facts_say_whenever_they_are_made(seed: int, sizes: list[int], writes: int) -> None:
    db, life, fold = database(), Life(seed), Fold()
    for number, size in enumerate(sizes):
        fold.take(msgspec.msgpack.encode(life.batch(size)))
        if writes >> number & 1:
            fold.write(db, 0)
    fold.write(db, 0)
    found = {table: list(rows(db, table, NOWHERE)) for table in STATE}
    assert comparable(found) == comparable(life.model.state.tables)
    db.close()


@given(
    seed=st.integers(0, 1 << 32), sizes=st.lists(st.integers(1, 12), min_size=1, max_size=15), until=st.integers(0, 15)
)
def test_a_journal_that_was_not_folded_is_not_lost(seed: int, sizes: list[int], until: int) -> None:
    db, life, fold = database(), Life(seed), Fold()
    for number, size in enumerate(sizes, 1):
        batch = msgspec.msgpack.encode(life.batch(size))
        db.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, *journal_row([batch])))
        fold.take(batch)
        if number == until:
            fold.write(db, number)
    again, last = replay(db, NOWHERE)
    again.write(db, last)
    assert not db.execute("SELECT count(*) FROM journal").fetchone()[0]
    found = {table: list(rows(db, table, NOWHERE)) for table in STATE}
    assert comparable(found) == comparable(life.model.state.tables)
    db.close()


def test_what_was_delivered_in_between_never_becomes_a_row() -> None:
    fold = Fold()
    message: Fact = (facts.MESSAGE, 0, 1, b"t", b"x", 1, False, b"", None, "p", 1, 1, 2.5)
    fold.take(msgspec.msgpack.encode([message, (facts.QUEUE, 1, 1, 1, b"", "")]))
    assert fold.rows
    fold.take(msgspec.msgpack.encode([(facts.SENT, 1, 1, 1, b"", "", 9)]))
    fold.take(msgspec.msgpack.encode([(facts.SETTLED, 1, 9)]))
    assert fold.rows == 0


def test_a_write_that_fails_changes_nothing() -> None:
    db, fold = database(), Fold()
    fold.take(msgspec.msgpack.encode([(facts.CLEAR, 0, b"t"), (facts.TAKE, 1, 1)]))
    db.execute("DROP TABLE retained")
    with pytest.raises(sqlite3.OperationalError):
        fold.write(db, 0)
    assert not db.in_transaction
    assert not db.execute("SELECT count(*) FROM inbound").fetchone()[0]
    db.close()
