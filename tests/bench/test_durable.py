"""Durable rows: stores on a disk that is one, sessions that stay, and a count of what the disk was told."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.records import made_up
from tests.bench.test_run import Dying, workload
from tests.bench.watching import Quiet
from tieline.bench import machine as disk_module
from tieline.bench.broker.cases import Fleet, make_plan
from tieline.bench.broker.suite import SUITE, is_quick
from tieline.bench.broker.workloads import WORKLOADS
from tieline.bench.brokers import known_peers
from tieline.bench.load.clients import clients
from tieline.bench.load.job import Job
from tieline.bench.load.latency import Assure
from tieline.bench.load.packets import connect
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.machine import Disk, disk_of
from tieline.bench.peer import Instance
from tieline.bench.suite.report import markdown
from tieline.bench.suite.results import Row
from tieline.bench.suite.runner import run

MOUNTS = """\
20 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 20 0:5 / /run/my\\040disk rw - tmpfs tmpfs rw
31 20 0:6 / /data rw shared:7 - tmpfs tmpfs rw
32 20 254:9 /sub /data rw - xfs /dev/vdb rw
"""
KEPT = Saturate(
    publishers=2,
    filters=("kept/#",) * 3,
    topics=Topics(pattern="kept/{p}"),
    fan=3,
    payload=32,
    qos=1,
    seconds=0.05,
    keeps_sessions=True,
)


@pytest.mark.parametrize(
    ("directory", "kind", "device"),
    [
        ("/", "ext4", "254:0"),
        ("/database", "ext4", "254:0"),
        ("/run/my disk/x", "tmpfs", "0:5"),
        ("/data", "xfs", "254:9"),
        ("/data/deep/er", "xfs", "254:9"),
    ],
)
def test_the_disk_of_a_directory(directory: str, kind: str, device: str) -> None:
    assert disk_of(Path(directory), MOUNTS) == Disk(file_system=kind, device=device)


def test_what_the_system_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert disk_of(tmp_path, "nonsense\n\n1 2 - \n") == Disk(file_system="unknown", device="")
    assert disk_of(tmp_path, "").flushes() is None
    assert disk_of(tmp_path).file_system != "unknown"


def test_flushes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = tmp_path / "diskstats"
    counted.write_text(" 254 0 vda" + " 1" * 15 + " 77 5\n 254 9 old" + " 1" * 11 + "\n")
    monkeypatch.setattr(disk_module, "_DISKS", counted)
    assert Disk(file_system="ext4", device="254:0").flushes() == 77
    assert Disk(file_system="ext4", device="254:9").flushes() is None, "an old kernel does not count them"
    assert Disk(file_system="ext4", device="1:1").flushes() is None
    counted.unlink()
    assert Disk(file_system="ext4", device="254:0").flushes() is None


def test_an_fsync_reaches_the_disk(tmp_path: Path) -> None:
    disk = disk_of(tmp_path)
    before = disk.flushes()
    if disk.is_volatile or before is None:
        pytest.skip(f"{disk.file_system} at {disk.device} counts no flushes")
    with (tmp_path / "file").open("wb") as file:
        file.write(bytes(8_192))
        file.flush()
        os.fsync(file.fileno())
    after = disk.flushes()
    if after == before:
        pytest.skip("this device takes an fsync without a flush")
    assert after is not None and after > before


def test_a_file_system_in_memory_is_not_called_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieline.bench.broker.cases.disk_of", lambda _: Disk(file_system="tmpfs", device="0:1"))
    work = workload(lambda _: KEPT, durable=True)
    record = run(SUITE, make_plan([Dying()], [work], disk=tmp_path), Quiet())
    assert [(row.status, "is on tmpfs, which keeps nothing" in row.note) for row in record.rows] == [("not run", True)]
    assert record.machine["disk"] == "tmpfs"


def test_only_brokers_with_a_store_are_asked() -> None:
    durable = [one for one in WORKLOADS if one.durable]
    assert {one.name for one in durable} == {"durable-1to1", "durable-fanin", "durable-fanout", "durable-latency"}
    for one in durable:
        assert {name for name, peer in known_peers().items() if one.objection(peer, has_certificate=True) is None} == {
            "tieline",
            "mosquitto",
        }


def test_a_session_that_stays() -> None:
    assert connect("c", version=4)[9] == 0x02
    assert connect("c", version=4, clean=False)[9] == 0x00


@pytest.mark.parametrize("name", ["tieline", "mosquitto"])
@pytest.mark.parametrize("job", [KEPT, Assure(messages=20)], ids=lambda job: type(job).__name__)
def test_a_real_broker_with_a_real_store(name: str, job: Job, need: Callable[[str], str], tmp_path: Path) -> None:
    if name == "mosquitto":
        need("mosquitto")
    instance = Instance(known_peers()[name], None, disk=tmp_path)
    try:
        at = instance.start()
        assert at.disk == disk_of(tmp_path)
        metrics = [job.run(at), job.run(at)][1]
        assert metrics["broker_cores"] > 0
        if job is KEPT and disk_of(tmp_path).flushes() is not None:
            assert "flushes_per_s" in metrics
        if name == "tieline":
            (store,) = tmp_path.glob("*/d/tieline.db")
            assert _sessions(store) >= 1, "what stays is in the file"
    finally:
        instance.stop()
    assert not [*tmp_path.iterdir()]


def _sessions(store: Path) -> int:
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        found: int = db.execute("SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM journal)").fetchone()[0]
        return found


def test_a_broker_with_a_store_is_not_used_where_none_is_asked_for(tmp_path: Path) -> None:
    peer = known_peers()["tieline"]
    with Fleet(tmp_path) as fleet:
        durable = fleet.endpoint(peer, durable=True)
        assert durable.disk is not None and fleet.endpoint(peer, durable=True) is durable
        plain = fleet.endpoint(peer)
        assert plain.disk is None and plain.pid != durable.pid
        with clients(plain, ["c"]):
            pass
        assert not [*tmp_path.iterdir()], "the first one has ended, and left nothing"


def test_the_page_says_how_often_the_disk_was_told() -> None:
    record = made_up()
    record.machine["disk"] = "ext4"
    for peer, rate, flushes in (("tieline", 5_000.0, 500.0), ("mosquitto", 2_500.0, 0.0)):
        numbers = {"rate": rate, "cpu_us_delivered": 5.0, "inbound_rate": rate, "flushes_per_s": flushes}
        record.rows.append(
            Row(workload="durable-1to1", title="1:1, kept", group="durable", peer=peer, repetitions=[numbers])
        )
    record.goals = [goal.judge(record) for goal in SUITE.goals]
    page = markdown(SUITE, record)
    assert "tieline flushed the disk (ext4) 500 times a second, with 10.0 published messages in each" in page
    assert "0 times while mosquitto worked" in page
    assert "durable: throughput, times that of mosquitto with persistence | ≥ 2.00x | 2.00x | met |" in page


def test_a_quick_run_has_durable_rows_too() -> None:
    names = {one.name for one in WORKLOADS if one.durable and is_quick(one)}
    assert names == {"durable-1to1", "durable-fanin", "durable-fanout"}
