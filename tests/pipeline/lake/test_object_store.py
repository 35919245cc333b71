"""A lake behind a real S3 API: batches, races, compaction, files that never counted, and a store that is too simple."""

from __future__ import annotations

import logging
import os
import pickle
import secrets
import shutil
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline.lake import kit
from tieline.bench.peer import free_ports
from tieline.bench.process import Process
from tieline.cli.pipeline.flags import storage_options
from tieline.pipeline.lake import Lake, LakeError, Overtaken
from tieline.pipeline.lake.compaction import compact
from tieline.pipeline.lake.delta import book, commits
from tieline.pipeline.lake.delta.keeper import Delta

ROOT = Path(__file__).resolve().parents[3]
#: The server is a program of its own, as other brokers are: `make object-store` installs it beside the project.
MOTO = shutil.which("moto_server", path=os.pathsep.join([str(ROOT / ".s3" / "bin"), os.environ.get("PATH", "")]))
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(MOTO is None, reason="no moto_server is installed: make object-store installs one"),
]

SECRET = "hidden-from-everybody"
KEY = "key-of-nobody"


@pytest.fixture(name="options", scope="module")
def _options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    assert MOTO is not None
    (port,) = free_ports(1)
    log = tmp_path_factory.mktemp("s3") / "moto.log"
    server = Process("S3 server", [MOTO, "-H", "127.0.0.1", "-p", str(port)], log)
    server.start()
    server.wait_until_ready("Running on")
    yield {
        "aws_endpoint_url": f"http://127.0.0.1:{port}",
        "aws_allow_http": "true",
        "aws_region": "us-east-1",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
    }
    server.stop()


@pytest.fixture(name="where")
def _where(options: dict[str, str]) -> str:
    bucket = f"lake-{secrets.token_hex(4)}"
    made = urllib.request.Request(f"{options['aws_endpoint_url']}/{bucket}", method="PUT")
    with urllib.request.urlopen(made, timeout=60) as answer:
        assert answer.status == 200
    return f"s3://{bucket}/deep/lake"


@pytest.fixture(name="lake")
def _lake(where: str, options: dict[str, str]) -> Lake:
    return Lake.create(where, kit.settings(), form="delta", options=options)


def delta(lake: Lake) -> Delta:
    assert isinstance(lake.keeper, Delta)
    return lake.keeper


def offsets(lake: Lake) -> list[int]:
    found = delta(lake).store.table("events/reading")
    return [] if found is None else sorted(found.to_pyarrow_table()["_offset"].to_pylist())


def land(lake: Lake, *numbers: int, day: int = 1) -> None:
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, numbers, day=day)})


def test_batches_land_are_read_by_tasks_and_compacted(
    lake: Lake, where: str, options: dict[str, str], spark: SparkSession
) -> None:
    land(lake, 0, 1)
    land(lake, 2, day=5)
    again = Lake.open(where, options=options)
    land(again, 3)
    assert (offsets(lake), again.state().batch) == ([0, 1, 2, 3], 2)
    (merged,) = compact(again)
    assert (merged.files_before, merged.files_after, merged.rows) == (3, 2, 4)
    rows = again.read(spark, "reading").collect()
    assert sorted((row["_offset"], row["batch"], str(row["day"])) for row in rows) == [
        (0, 0, "2026-03-01"), (1, 0, "2026-03-01"), (2, 1, "2026-03-05"), (3, 2, "2026-03-01"),
    ]  # fmt: skip
    assert all(name.startswith(where) for name in again.files("events/reading"))


def test_of_two_that_land_one_is_refused(lake: Lake, where: str, options: dict[str, str]) -> None:
    other, before = Lake.open(where, options=options), lake.state()
    with lake.attempt() as slow:
        land(other, 0)
        for written in slow.target.write(kit.rows_of(lake, kit.READING, [0]), kit.READING):
            slow.adopt(written)
        with pytest.raises(Overtaken, match="somebody else fills this lake"):
            lake.land(slow, before, before)
    # at the very same moment: the store itself refuses the second
    store = delta(lake).store
    one, two = book.read(store), book.read(store)
    book.turn(store, one, one.page)
    with pytest.raises(commits.Refused):
        book.turn(store, two, two.page)
    assert offsets(Lake.open(where, options=options)) == [0]


def test_of_two_compactions_one_wins(lake: Lake, where: str, options: dict[str, str]) -> None:
    for number in range(2):
        land(lake, number)

    def meanwhile(merges: Any) -> Any:
        told = [each for merge in merges for each in merge.carry_out()]
        list(compact(Lake.open(where, options=options)))
        return told

    with pytest.raises(LakeError, match="compacted by somebody else"):
        list(compact(lake, run=meanwhile))
    assert offsets(lake) == [0, 1]


def test_files_that_never_counted_go_when_they_are_of_age(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    land(lake, 0)
    with lake.attempt() as given_up:
        (orphan,) = given_up.target.write(kit.rows_of(lake, kit.READING, [7]), kit.READING)
    store = delta(lake).store
    list(compact(lake))
    assert store.size(f"events/reading/{orphan.path}") is not None
    # a store says in whole seconds when a file was written
    real = DeltaTable.vacuum

    def at_once(table: DeltaTable, **given: Any) -> Any:
        return real(table, **{**given, "retention_hours": 0, "enforce_retention_duration": False})

    monkeypatch.setattr(DeltaTable, "vacuum", at_once)
    time.sleep(1.1)
    list(compact(lake))
    assert store.size(f"events/reading/{orphan.path}") is None
    assert offsets(lake) == [0]


def test_what_a_process_leaves_undone_the_next_finishes(
    lake: Lake, where: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Crash

    land(lake, 0)
    with monkeypatch.context() as patch:
        # the book is turned, and the tables do not have the batch yet
        turned = delta(lake)
        finish = turned._finish
        calls: list[int] = []

        def second() -> None:
            calls.append(1)
            die() if len(calls) == 2 else finish()

        patch.setattr(turned, "_finish", second)
        with pytest.raises(Crash):
            land(lake, 1)
    again = Lake.open(where, options=options)
    assert (again.state().batch, offsets(again)) == (1, [0])
    with again.ingesting():
        assert offsets(again) == [0, 1]
    land(again, 2)
    assert offsets(again) == [0, 1, 2]


def test_nothing_prints_what_the_store_is_told(
    lake: Lake, where: str, options: dict[str, str], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    land(lake, 0)
    list(compact(lake))
    wrong = {**options, "aws_endpoint_url": "http://127.0.0.1:1"}
    with pytest.raises(Exception) as caught:
        Lake.open(where, options=wrong)
    with lake.attempt() as attempt:
        told = [repr(lake), repr(attempt), repr(attempt.target), str(attempt.target), repr(delta(lake).store)]
        # it does travel to tasks
        assert SECRET.encode() in pickle.dumps(attempt.target)
    out, err = capfd.readouterr()
    for text in (*told, str(caught.value), repr(caught.value), caplog.text, out, err):
        assert SECRET not in text


def test_a_store_without_conditional_puts_is_refused(
    where: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = book._commit
    committed: list[int] = []

    def both_win(*given: Any, **named: Any) -> None:
        """The second of two writers is told that it was first, as such a store would."""
        committed.append(1)
        if len(committed) == 1:
            real(*given, **named)

    monkeypatch.setattr(book, "_commit", both_win)
    with pytest.raises(LakeError, match="a store with conditional puts"):
        Lake.create(where, kit.settings(), form="delta", options=options)


def test_options_come_from_a_file_and_its_faults_are_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "storage.toml"
    file.write_text(f'aws_region = "local"\naws_secret_access_key = "{SECRET}"\n')
    monkeypatch.setenv("TIELINE_STORAGE", str(file))
    assert storage_options() == {"aws_region": "local", "aws_secret_access_key": SECRET}
    file.write_text(f'aws_secret_access_key = "{SECRET}')
    with pytest.raises(Exception, match="which cannot be read") as caught:
        storage_options()
    assert SECRET not in str(caught.value)
