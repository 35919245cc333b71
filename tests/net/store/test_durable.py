"""The store over its writer process, as a broker uses it."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kits.check_store import Finish, check_store
from tests.kits.patience import PATIENCE_S
from tests.net.store.stage import Stage, clear, record, retain
from tieline.core.ports import Store
from tieline.core.restore import StoredState
from tieline.net.store.durable import BEHIND, Durable
from tieline.net.store.schema import Unusable, path_of


def test_the_kit_passes(new_stage: Callable[[], Stage]) -> None:
    stages: dict[int, Stage] = {}

    def make() -> tuple[Store, Finish]:
        stage = new_stage()
        store = stage.open()
        stages[id(store)] = stage
        return store, lambda: stage.finish(store)

    def reopen(old: Store) -> tuple[Store, Finish, StoredState]:
        assert isinstance(old, Durable)
        stage = stages[id(old)]
        store = stage.reopen(old)
        stages[id(store)] = stage
        return store, lambda: stage.finish(store), stage.state

    check_store(make, reopen)


def test_what_is_committed_survives_the_writer(stage: Stage) -> None:
    store = stage.open()
    for number in range(1, 50):
        store.submit(retain(number))
        stage.finish(store)
    store.submit(retain(99))  # never flushed
    stage.reopen(store)
    assert {row[1] for row in stage.state.tables["retained"]} == set(range(1, 50))


def test_what_was_sent_to_the_writer_is_committed_when_the_broker_dies(stage: Stage) -> None:
    store = stage.open()
    for number in range(1, 50):
        store.submit(retain(number))
    store.flush()
    assert store._sock is not None
    store._sock.close()  # as the kernel does for a dead process
    store._sock = None
    assert store._process is not None
    assert store._process.wait(PATIENCE_S) == 0
    stage.close()
    stage.open()
    assert len(stage.state.tables["retained"]) == 49


def test_a_clean_end_keeps_what_was_not_even_flushed(stage: Stage) -> None:
    store = stage.open()
    store.submit(retain(1))
    stage.close()
    stage.open()
    assert len(stage.state.tables["retained"]) == 1


def test_the_writer_is_not_ended_by_signals_for_the_broker(stage: Stage) -> None:
    store = stage.open()
    for name in ("INT", "TERM", "HUP"):
        subprocess.run(["kill", f"-{name}", str(stage.writer(store))], check=True)
    store.submit(retain(1))
    stage.finish(store)


def test_a_lost_writer_is_told(stage: Stage) -> None:
    store = stage.open()
    store.submit([clear()])
    os.kill(stage.writer(store), 9)
    while not stage.ends:
        stage.step(store)
    assert "ended" in stage.ends[0]
    assert store.committed == 0


def test_starts_and_messages_go_on(stage: Stage) -> None:
    store = stage.open()
    assert (stage.state.starts, stage.state.messages) == (1, 0)
    store.submit(retain(17))
    stage.finish(store)
    stage.reopen(store)
    assert (stage.state.starts, stage.state.messages) == (2, 17)


def test_a_store_that_is_behind_says_so_and_recovers(stage: Stage) -> None:
    store = stage.open()
    payload = bytes(100_000)
    number = 0
    while not store.is_behind:
        number += 1
        store.submit(retain(number % 5 + 1 + number, payload))
        assert store.backlog <= BEHIND + 200_000
    stage.finish(store)
    assert store.backlog == 0
    store.submit([clear()])
    assert not bool(store.is_behind)


def test_a_second_broker_is_refused(stage: Stage) -> None:
    stage.open()
    with pytest.raises(Unusable, match=rf"another broker \(process {os.getpid()}\) keeps its data in"):
        stage.open()


def test_the_directory_is_free_when_a_store_could_not_be_opened(stage: Stage) -> None:
    stage.data.mkdir(mode=0o700)
    path_of(stage.data).write_bytes(b"this is not a database, whatever it is, and it is long enough" * 100)
    for _ in range(2):
        with pytest.raises(Unusable, match=r"is damaged: .*tieline store repair"):
            stage.open()


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable, match="cannot be used"), Stage(tmp_path / "file" / "data") as stage:
        stage.open()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory(stage: Stage) -> None:
    stage.data.mkdir(mode=0o500)
    with pytest.raises(Unusable, match="cannot be written"):
        stage.open()


@pytest.mark.parametrize("keeps", [0, 0.3, 0.9])
def test_a_file_that_was_cut_off_is_refused(stage: Stage, keeps: float) -> None:
    store = stage.open()
    for number in range(1, 40):
        store.submit(retain(number, bytes(20_000)))
    stage.finish(store)
    stage.close()
    path = path_of(stage.data)
    os.truncate(path, int(path.stat().st_size * keeps))
    with pytest.raises(Unusable, match=r"is damaged: .*tieline store repair|is missing or empty"):
        stage.open()


def test_a_file_that_is_missing_is_not_replaced_in_silence(stage: Stage) -> None:
    stage.open()
    stage.close()
    path_of(stage.data).unlink()
    with pytest.raises(Unusable, match=r"missing or empty, but there was a store .*backup"):
        stage.open()


def test_a_message_that_has_changed_on_disk_is_refused(stage: Stage) -> None:
    store = stage.open()
    store.submit(retain(1, b"the old payload"))
    stage.finish(store)
    stage.close()
    path = path_of(stage.data)
    path.write_bytes(path.read_bytes().replace(b"the old payload", b"the new payload"))
    with pytest.raises(Unusable, match="message 1"):
        stage.open()


def test_a_newer_file_is_refused(stage: Stage) -> None:
    stage.open()
    stage.close()
    db = sqlite3.connect(path_of(stage.data))
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(Unusable, match="has version 99"):
        stage.open()


def test_without_room_nothing_is_acknowledged_and_nothing_is_lost(stage: Stage) -> None:
    store = stage.open()
    store.submit(retain(1), [record(1)])
    stage.finish(store)
    # every file that grows beyond this fails, as on a full disk
    pid = stage.writer(store)
    limit = max(path.stat().st_size for path in stage.data.iterdir() if path.name != "reserve") + 4_096
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for number in range(2, 40):
        store.submit(retain(number, bytes(20_000)), [record(number, bytes(20_000))])
    before = store.committed
    while not stage.troubles:
        stage.step(store)
    assert "cannot write" in stage.troubles[0]
    stage.step(store, 0.7)
    assert store.committed < store.submitted
    assert store.committed >= before
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    stage.finish(store)
    assert stage.troubles[-1] == ""
    stage.reopen(store)
    assert len(stage.state.tables["retained"]) == 39
