from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.net.store.stage import Stage, record
from tieline.net.store.frames import Keep
from tieline.net.store.reading import Gap, Log, keep_position, position
from tieline.net.store.schema import Damaged, Unusable, path_of


def filled(stage: Stage, groups: int = 5, each: int = 3) -> None:
    """A log of so many groups of so many records."""
    store = stage.open()
    for group in range(groups):
        store.submit([], [record(group * each + place) for place in range(each)])
        stage.finish(store)


def test_records_have_consecutive_offsets(stage: Stage) -> None:
    filled(stage)
    with Log(stage.data) as log:
        assert (log.earliest(), log.latest()) == (0, 15)
        assert [(one.offset, one.received) for one in log.read(0)] == [(number, number) for number in range(15)]


@pytest.mark.parametrize(("first", "last"), [(0, 15), (0, 0), (4, 11), (14, 15), (3, 6), (7, None), (9, 100), (15, 20)])
def test_any_range_can_be_read(stage: Stage, first: int, last: int | None) -> None:
    filled(stage)
    with Log(stage.data) as log:
        wanted = list(range(first, min(15, 100 if last is None else last)))
        assert [one.offset for one in log.read(first, last)] == wanted


def test_the_log_is_read_beside_the_writer(stage: Stage) -> None:
    store = stage.open()
    with Log(stage.data) as log:
        assert (log.earliest(), log.latest()) == (0, 0)
        for number in range(5):
            store.submit([], [record(number)])
            stage.finish(store)
            assert [one.received for one in log.read(number)] == [number]


def test_offsets_go_on_after_a_crash(stage: Stage) -> None:
    store = stage.open()
    store.submit([], [record(0), record(1)])
    stage.finish(store)
    store = stage.reopen(store)
    store.submit([], [record(2)])
    stage.finish(store)
    with Log(stage.data) as log:
        assert [one.received for one in log.read(0)] == [0, 1, 2]


def test_who_asks_for_what_is_gone_is_told_what_is_missing(stage: Stage) -> None:
    filled(stage)
    stage.close()
    db = sqlite3.connect(path_of(stage.data))
    db.execute("DELETE FROM log WHERE first_offset < 6")
    db.commit()
    db.close()
    with Log(stage.data) as log:
        assert (log.earliest(), log.latest()) == (6, 15)
        with pytest.raises(Gap, match=r"offsets 2 to 5 are not there any more; the next .* has offset 6") as gap:
            list(log.read(2, 9))
        assert (gap.value.first, gap.value.last) == (2, 6)
        assert [one.offset for one in log.read(6, 9)] == [6, 7, 8]


def test_an_empty_log_after_retention_still_knows_its_end(stage: Stage) -> None:
    filled(stage)
    stage.close()
    db = sqlite3.connect(path_of(stage.data))
    db.execute("DELETE FROM log")
    db.commit()
    db.close()
    with Log(stage.data) as log:
        assert (log.earliest(), log.latest()) == (15, 15)
        with pytest.raises(Gap):
            list(log.read(0))
    store = stage.open()
    store.submit([], [record(15)])
    stage.finish(store)
    with Log(stage.data) as log:
        assert [one.offset for one in log.read(15)] == [15]


def test_a_damaged_group_is_not_read(stage: Stage) -> None:
    filled(stage)
    stage.close()
    db = sqlite3.connect(path_of(stage.data))
    db.execute("UPDATE log SET blob = zeroblob(20) WHERE first_offset = 3")
    db.commit()
    db.close()
    with Log(stage.data) as log:
        assert len(list(log.read(0, 3))) == 3
        with pytest.raises(Damaged, match="from offset 3 on"):
            list(log.read(0))


def test_events_are_a_stream_of_their_own(stage: Stage) -> None:
    store = stage.open()
    store.submit([], [record(0)], [(5, "connect", "c", "", {"peer": "x"}), (6, "drop", "c", "t", {"count": 2})])
    stage.finish(store)
    with Log(stage.data, stream="events") as events:
        assert [(one.offset, one.kind, one.detail) for one in events.read(0)] == [
            (0, "connect", {"peer": "x"}),
            (1, "drop", {"count": 2}),
        ]


def test_where_there_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="does not exist"):
        Log(tmp_path)
    path_of(tmp_path).write_bytes(b"nonsense" * 1_000)
    with pytest.raises(Unusable, match="cannot be read"):
        Log(tmp_path)
    path_of(tmp_path).unlink()
    sqlite3.connect(path_of(tmp_path)).execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(Unusable, match="not a store"):
        Log(tmp_path)


def test_positions_of_readers(tmp_path: Path) -> None:
    assert position(tmp_path, "spark") is None
    keep_position(tmp_path, "spark", 17)
    keep_position(tmp_path, "spark", 18)
    assert position(tmp_path, "spark") == 18
    with pytest.raises(ValueError, match="no name for a reader"):
        keep_position(tmp_path, "../spark", 1)
    (tmp_path / "readers" / "spark").write_text("x")
    with pytest.raises(Unusable):
        position(tmp_path, "spark")


# --- retention ------------------------------------------------------------------------------------------------------


def settle(stage: Stage, *, earliest: int, stream: str = "log") -> None:
    """Wait until retention has removed everything below an offset."""
    with Log(stage.data) as log:
        for _ in range(400):
            if log.earliest() >= earliest:
                break
            stage.step(stage._stores[-1], 0.05)
        assert log.earliest() == earliest


def test_retention_by_bytes(tmp_path: Path) -> None:
    with Stage(tmp_path / "data", Keep(bytes=5_000)) as stage:
        store = stage.open()
        for number in range(20):
            store.submit([], [record(number, bytes(1_000))])
            stage.finish(store)
        stage.close()
        stage.open()
        settle(stage, earliest=16)


def test_retention_by_age(tmp_path: Path) -> None:
    with Stage(tmp_path / "data", Keep(age_s=0.0)) as stage:
        store = stage.open()
        store.submit([], [record(0), record(1)])
        stage.finish(store)
        stage.close()
        stage.open()
        settle(stage, earliest=2)


def test_a_reader_holds_retention_up_to_a_hard_bound(tmp_path: Path) -> None:
    with Stage(tmp_path / "data", Keep(bytes=5_000, hard_bytes=50_000, readers=("spark", "other"))) as stage:
        store = stage.open()
        keep_position(stage.data, "other", 100)
        for number in range(20):
            store.submit([], [record(number, bytes(1_000))])
            stage.finish(store)
        stage.close()
        store = stage.open()
        stage.step(store, 0.5)
        settle(stage, earliest=0)
        keep_position(stage.data, "spark", 10)
        stage.close()
        store = stage.open()
        settle(stage, earliest=10)
        assert not stage.alarms
        for number in range(20, 80):
            store.submit([], [record(number, bytes(1_000))])
            stage.finish(store)
        stage.close()
        store = stage.open()
        while not stage.alarms:
            stage.step(store)
        assert "reader spark has not read" in stage.alarms[0]
        with Log(stage.data) as log, Log(stage.data, stream="events") as events:
            assert log.earliest() > 10
            assert log.bytes() <= 50_000
            for _ in range(400):
                if events.latest():
                    break
                stage.step(store, 0.05)
            assert {one.kind for one in events.read(0)} == {"alarm"}
