"""A made-up record with round numbers, for the tests of everything that reads one."""

from __future__ import annotations

from tieline.bench.broker.suite import SUITE
from tieline.bench.load.job import Metrics
from tieline.bench.suite.results import Results, Row


def throughput(rate: float, cpu_us: float) -> Metrics:
    return {"rate": rate, "cpu_us_delivered": cpu_us, "generator_cores": 0.3, "broker_cores": 1.0}


def made_up() -> Results:
    record = Results(
        form="broker-2",
        quick=True,
        started="2025-01-01T00:00:00+00:00",
        commit="abc",
        machine={"processor": "Abacus", "cores": 2, "memory_gb": 1.0, "kernel": "6"},
        versions={"tieline": "1", "mosquitto": "2", "nats": "3"},
        absent={"amqtt": "tieline bench peers amqtt"},
        seconds=10,
    )
    record.rows = [
        Row(
            workload="qos0-1to1",
            title="1:1, QoS 0, 64 B",
            group="throughput",
            peer="tieline",
            repetitions=[throughput(400_000, 2.0), throughput(100_000, 9.0), throughput(500_000, 1.0)],
        ),
        Row(
            workload="qos0-1to1",
            title="1:1, QoS 0, 64 B",
            group="throughput",
            peer="mosquitto",
            repetitions=[throughput(100_000, 8.0)],
        ),
        Row(
            workload="qos0-1to1",
            title="1:1, QoS 0, 64 B",
            group="throughput",
            peer="nats",
            status="failed",
            note="the broker died (exit code 1)",
        ),
        Row(
            workload="idle",
            title="idle connections, TCP",
            group="connections",
            peer="tieline",
            repetitions=[{"bytes_connection": 25_000.0, "bytes_subscribed": 26_000.0}],
        ),
        Row(
            workload="latency",
            title="ping-pong",
            group="latency",
            peer="tieline",
            status="not run",
            note="10 s were over",
        ),
    ]
    record.goals = [goal.judge(record) for goal in SUITE.goals]
    return record
