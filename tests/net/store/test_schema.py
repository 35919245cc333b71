from __future__ import annotations

import sqlite3

import pytest

from tieline.core.durable.facts import STATE
from tieline.net.store.schema import COUNTERS, STEPS, TABLES, Unusable, prepare, version_of


def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def test_a_new_file_has_every_step() -> None:
    db = memory()
    prepare(db, 17.0)
    assert version_of(db) == len(STEPS)
    assert db.execute("SELECT * FROM migration").fetchall() == [(n, 17.0) for n in range(1, len(STEPS) + 1)]
    prepare(db, 18.0)
    assert db.execute("SELECT count(*) FROM migration").fetchone() == (len(STEPS),)
    db.close()


def test_an_older_file_becomes_a_newer_one() -> None:
    db = memory()
    told: list[str] = []
    prepare(db, 1.0)
    steps = (*STEPS, "ALTER TABLE session ADD COLUMN more TEXT; UPDATE session SET more = 'x'")
    prepare(db, 2.0, steps, told.append)
    assert version_of(db) == len(steps)
    assert told == [f"the store was migrated from version {len(STEPS)} to {len(steps)}"]
    db.execute("SELECT more FROM session")
    db.close()


def test_a_file_of_the_first_version() -> None:
    db = memory()
    prepare(db, 1.0, STEPS[:1])
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert not tables & {name for name, table in TABLES.items() if table.since > 1}
    prepare(db, 2.0)
    for table in TABLES:
        assert not db.execute(f"SELECT * FROM {table}").fetchall()
    db.close()


def test_a_step_that_fails_is_undone() -> None:
    db = memory()
    prepare(db, 1.0)
    with pytest.raises(sqlite3.OperationalError):
        prepare(db, 2.0, (*STEPS, "CREATE TABLE half (x); CREATE TABLE half (x)"))
    assert version_of(db) == len(STEPS)
    assert not db.execute("SELECT * FROM sqlite_schema WHERE name = 'half'").fetchall()
    db.close()


def test_files_of_others_and_of_the_future_are_refused() -> None:
    db = memory()
    db.execute("PRAGMA user_version = 1")
    with pytest.raises(Unusable, match="another program"):
        prepare(db, 1.0)
    db.close()
    db = memory()
    prepare(db, 1.0)
    db.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    with pytest.raises(Unusable, match="use a newer one"):
        prepare(db, 1.0)
    db.close()


def test_the_lists_of_tables_name_what_is_there() -> None:
    db = memory()
    prepare(db, 1.0)
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert there == TABLES.keys() | COUNTERS.keys() | {"migration"}
    # what waits in the store alone is a part of the queue
    assert set(STATE) - {"spilled"} < TABLES.keys()
    for name, table in TABLES.items():
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
        assert set(table.key.split(", ")) <= set(columns)
        assert table.checksum is None or [columns[at] for at in table.checksum] == ["crc", "blob"]
        assert (table.checksum is None) == ("crc" not in columns)
    db.close()
