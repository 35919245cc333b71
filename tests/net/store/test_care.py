from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.net.store.stage import Stage, record, retain
from tieline.net.store.care import backup, check, repair
from tieline.net.store.reading import Gap, Log
from tieline.net.store.schema import STEPS, Unusable, path_of, prepare


def filled(stage: Stage, count: int = 60) -> None:
    """A store with some state and some log, closed."""
    store = stage.open()
    for number in range(1, count + 1):
        store.submit(retain(number, b"payload %05d" % number * 100), [record(number, b"logged %05d" % number * 100)])
        stage.finish(store)
    stage.close()


def test_a_store_that_is_whole(stage: Stage) -> None:
    filled(stage)
    found = check(stage.data)
    assert not found.problems
    assert (found.rows["retained"], found.rows["log"]) == (60, 60)


def test_a_store_of_the_first_version_is_whole(stage: Stage) -> None:
    stage.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = sqlite3.connect(path_of(stage.data), isolation_level=None)
    prepare(db, 1.0, STEPS[:1])
    db.close()
    assert not check(stage.data).problems
    assert not repair(stage.data).problems
    store = stage.open()
    store.submit(retain(1))
    stage.finish(store)
    stage.close()
    assert check(stage.data).rows["producer"] == 0


def test_a_check_beside_the_writer(stage: Stage) -> None:
    store = stage.open()
    store.submit(retain(1))
    stage.finish(store)
    assert not check(stage.data).problems


def test_changed_bytes_are_found(stage: Stage) -> None:
    filled(stage)
    path = path_of(stage.data)
    path.write_bytes(path.read_bytes().replace(b"logged 00030", b"logged 00031", 1))
    assert check(stage.data).problems == ["log 29 is not as it was written"]


def test_a_hole_in_the_log_is_found(stage: Stage) -> None:
    filled(stage)
    db = sqlite3.connect(path_of(stage.data))
    db.execute("DELETE FROM log WHERE first_offset IN (10, 11)")
    db.commit()
    db.close()
    assert check(stage.data).problems == ["log: offsets 10 to 11 are missing"]


def test_a_backup_beside_the_writer_is_the_store(stage: Stage, tmp_path: Path) -> None:
    store = stage.open()
    for number in range(1, 30):
        store.submit(retain(number), [record(number)])
    stage.finish(store)
    target = tmp_path / "copy" / "tieline.db"
    target.parent.mkdir(mode=0o700)
    backup(stage.data, target)
    assert target.stat().st_mode & 0o777 == 0o600
    store.submit(retain(99))
    stage.finish(store)
    with Stage(target.parent) as copy:
        copy.open()
        assert len(copy.state.tables["retained"]) == 29
        with Log(copy.data) as log:
            assert log.latest() == 29
    with pytest.raises(Unusable, match="replaces nothing"):
        backup(stage.data, target)
    with pytest.raises(Unusable, match="could not be written"):
        backup(stage.data, tmp_path / "nowhere" / "file")


@pytest.mark.parametrize("keeps", [0.5, 0.8])
def test_what_can_be_read_of_a_file_that_was_cut_off_is_saved(stage: Stage, keeps: float) -> None:
    filled(stage)
    path = path_of(stage.data)
    os.truncate(path, int(path.stat().st_size * keeps) // 4_096 * 4_096)
    before = path.read_bytes()
    with pytest.raises(Unusable, match="tieline store repair"):
        stage.open()
    found = repair(stage.data)
    assert found.problems
    assert found.aside is not None and found.aside.read_bytes() == before, "the old file is as it was"
    assert found.rows["log"] + found.rows["retained"] > 0
    stage.open()
    assert len(stage.state.tables["retained"]) == found.rows["retained"]
    with Log(stage.data) as log:
        assert log.latest() >= found.rows["log"]


def test_offsets_do_not_go_back_in_a_repair(stage: Stage) -> None:
    filled(stage)
    path = path_of(stage.data)
    path.write_bytes(path.read_bytes().replace(b"logged 00060", b"logged 00061", 1))
    found = repair(stage.data)
    assert found.problems == ["log 59 was not as it was written, and is lost"]
    with Log(stage.data) as log:
        assert log.latest() == 60
        with pytest.raises(Gap, match="offsets 59 to 59"):
            list(log.read(50))


def test_what_referred_to_a_lost_message_is_named(stage: Stage) -> None:
    filled(stage)
    path = path_of(stage.data)
    path.write_bytes(path.read_bytes().replace(b"payload 00007", b"payload 00008", 1))
    with pytest.raises(Unusable, match="message 7"):
        stage.open()
    found = repair(stage.data)
    assert "message 7 was not as it was written, and is lost" in found.problems
    assert "1 rows of retained referred to a lost message and are gone" in found.problems
    stage.open()
    assert len(stage.state.tables["retained"]) == 59


def test_a_file_of_nonsense_leaves_an_empty_store_and_says_so(stage: Stage) -> None:
    filled(stage)
    path_of(stage.data).write_bytes(b"nonsense" * 10_000)
    found = repair(stage.data)
    assert found.problems
    assert not any(found.rows.values())
    stage.open()


def test_repair_needs_the_directory_for_itself(stage: Stage) -> None:
    stage.open()
    with pytest.raises(Unusable, match="another broker"):
        repair(stage.data)


def test_there_must_be_something_to_repair(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="nothing to repair"):
        repair(tmp_path)
