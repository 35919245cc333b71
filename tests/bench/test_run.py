"""The run goes on past brokers that fail, and leaves no process behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from tests.bench.watching import Quiet
from tieline.bench.broker.cases import QUICK, BrokerEffort, Workload, make_plan, repetitions
from tieline.bench.broker.suite import SUITE
from tieline.bench.broker.workloads import WORKLOADS
from tieline.bench.brokers import Mosquitto, known_peers
from tieline.bench.load.connections import ConnectMany, HoldIdle, Visits
from tieline.bench.load.job import Endpoint, Failure, Job, Metrics
from tieline.bench.load.latency import PacedClients, PingPong
from tieline.bench.load.saturate import FirstMessages, Saturate, Topics
from tieline.bench.peer import Instance, InstanceResources, Peer, make_certificate
from tieline.bench.suite.runner import run


class Dying(Peer):
    """A broker that ends at once."""

    name: ClassVar[str] = "dying"
    install: ClassVar[str] = "nothing"

    def version(self) -> str | None:
        return "0"

    def command(self, place: InstanceResources) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.exit('no licence')"]


@dataclass(frozen=True)
class Telling:
    """A job that says which process it was given."""

    patience_s: float = 5.0

    def run(self, at: Endpoint) -> Metrics:
        return {"pid": at.pid, "rate": 1.0}


def workload(job: Callable[[BrokerEffort], Job], **options: object) -> Workload:
    named = {"name": "qos0-1to1", "title": "tiny", "group": "throughput", "pair_only": False}
    return Workload(job=job, **{**named, **options})  # type: ignore[arg-type]


def tiny(_effort: BrokerEffort) -> Job:
    return saturate(0)


def saturate(qos: int, *, version: int = 4, payload: int = 32) -> Saturate:
    return Saturate(
        publishers=2,
        filters=("pair/0", "pair/1"),
        topics=Topics(pattern="pair/{p}"),
        payload=payload,
        qos=qos,
        version=version,
        seconds=0.05,
    )


def test_a_broker_that_dies_becomes_a_row_with_its_last_words() -> None:
    record = run(SUITE, make_plan([Dying()], [workload(tiny), workload(tiny, name="latency")]), Quiet())
    assert [row.status for row in record.rows] == ["failed", "failed"]
    assert "exit code 1" in record.rows[0].note
    assert "no licence" in record.rows[0].note


def test_brokers_take_turns_and_a_failed_one_is_not_asked_again(need: Callable[[str], str]) -> None:
    need("mosquitto")
    quiet = Quiet()
    record = run(SUITE, make_plan([Mosquitto(), Dying()], [workload(tiny)]), quiet)
    assert quiet.steps == 6
    assert quiet.begun == ["tiny: mosquitto (1)", "tiny: dying (1)", "tiny: mosquitto (2)", "tiny: mosquitto (3)"]
    row = record.row("qos0-1to1", "mosquitto")
    assert row is not None
    assert row.status == "measured"
    assert len(row.repetitions) == 3
    assert row.metrics["delivered"] > 0


@pytest.mark.parametrize(
    "job",
    [
        saturate(0),
        saturate(0, version=5),
        saturate(1),
        saturate(2),
        saturate(0, payload=262_144),
        FirstMessages(topics=500),
        PingPong(messages=50),
        PacedClients(clients=5, per_second=40, seconds=0.1),
        PacedClients(clients=5, per_second=40, seconds=0.1, tls=True),
        PacedClients(clients=5, per_second=40, seconds=0.1, first=True),
        ConnectMany(connections=20),
        Visits(visits=100),
        HoldIdle(connections=10),
    ],
    ids=lambda job: type(job).__name__,
)
def test_every_job_gets_its_numbers_from_a_real_broker(
    job: Job, need: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("mosquitto")
    need("openssl")
    monkeypatch.setattr("tieline.bench.load.connections._SETTLE_S", 0.0)
    instance = Instance(Mosquitto(), make_certificate(tmp_path))
    try:
        metrics = job.run(instance.start())
    finally:
        instance.stop()
    assert all(value >= 0 for name, value in metrics.items() if not name.startswith("bytes"))
    assert "broker_cores" in metrics


def test_a_broker_that_cannot_start_leaves_no_directory() -> None:
    instance = Instance(Dying(), None)
    with pytest.raises(Failure, match="died"):
        instance.start()
    instance.stop()
    assert not instance._directory.exists()


def test_workloads_are_distinct_and_can_be_made() -> None:
    assert len({one.name for one in WORKLOADS}) == len(WORKLOADS)
    for one in WORKLOADS:
        assert one.job(QUICK).patience_s > 0


def test_long_payloads_are_measured_five_times_and_all_as_often_as_asked() -> None:
    long = next(one for one in WORKLOADS if one.name == "qos0-fanout-64kB")
    short = next(one for one in WORKLOADS if one.name == "qos0-1to1")
    assert [repetitions(one, quick=False) for one in (long, short)] == [5, 3]
    assert [repetitions(one, quick=True) for one in (long, short)] == [1, 1]
    assert [repetitions(one, quick=quick, repeat=2) for quick in (True, False) for one in (long, short)] == [2] * 4


def test_a_broker_is_another_one_where_a_workload_says_so(need: Callable[[str], str]) -> None:
    need("mosquitto")
    for options, expected in (({}, 1), ({"anew": True}, 3)):
        record = run(SUITE, make_plan([Mosquitto()], [workload(lambda _: Telling(), **options)]), Quiet())
        pids = {int(one["pid"]) for row in record.rows for one in row.repetitions}
        assert len(pids) == expected


def test_a_visit_to_nobody_leaves_no_socket(need: Callable[[str], str]) -> None:
    need("mosquitto")
    instance = Instance(Mosquitto(), None)
    at = instance.start()
    instance.stop()
    with pytest.raises(OSError, match="refused"):
        Visits(visits=1).run(at)


def test_what_a_peer_does_not_offer_is_said() -> None:
    nats = known_peers()["nats"]
    by_name = {one.name: one for one in WORKLOADS}
    assert by_name["qos2-1to1"].objection(nats, has_certificate=True) == "QoS 2 is not offered"
    assert by_name["qos0-1to1-v5"].objection(nats, has_certificate=True) == "MQTT 5 is not offered"
    assert by_name["idle-tls"].objection(Mosquitto(), has_certificate=False) is not None
    assert by_name["idle-tls"].objection(Mosquitto(), has_certificate=True) is None
