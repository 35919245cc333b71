"""The demand matrix, and the planning problem made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.jobs.scenes import events_table, frame, rows, traffic
from tieline.instance_document import InstanceDocument, rendered
from tieline.log.record import Occurrence
from tieline.pipeline.jobs.instance import NetworkFile, Unplannable, instance
from tieline.pipeline.jobs.traffic import deliveries, demand_matrix, homes, unnamed_share
from tieline.plan.reading import document as plan_document

TOLD = [
    traffic(10, "meter", "grid/1", "desk", {1: 10}, level=0, class_="log"),
    traffic(20, "meter", "grid/1", "desk", {1: 20}, level=0, class_="log"),
    traffic(20, "meter", "grid/1", "book", {1: 12}, level=0, class_="log"),
    traffic(20, "meter", "grid/1", "book", {1: 3}, level=3, class_="alarm"),
    traffic(40, "desk", "grid/cmd", "meter", {1: 4}, level=2, class_="control", size=50),
    traffic(40, "desk", "grid/cmd", "desk", {1: 4}, level=2, class_="control", size=50),
    traffic(40, "", "$SYS/broker/uptime", "desk", {1: 40}),
    traffic(40, "(others)", "(others)", "(others)", {1: 7}),
]


def connected(client: str, seconds: float) -> Occurrence:
    return msgspec.structs.replace(traffic(seconds, "", "", client, {}), kind="connect", topic="")


def test_rates_are_over_the_time_that_the_records_span(spark: SparkSession) -> None:
    events = frame(spark, events_table(TOLD), events_table([traffic(10, "meter", "grid/1", "desk", {1: 5})], "b"))
    found = rows(demand_matrix(deliveries(events)))
    assert [(row["shard"], row["publisher"], row["topic"], row["subscriber"], row["level"]) for row in found] == [
        ("a", "desk", "grid/cmd", "desk", 2),
        ("a", "desk", "grid/cmd", "meter", 2),
        ("a", "meter", "grid/1", "book", 0),
        ("a", "meter", "grid/1", "book", 3),
        ("a", "meter", "grid/1", "desk", 0),
        ("b", "meter", "grid/1", "desk", 1),
    ]
    assert [row["messages"] for row in found] == [4, 4, 12, 3, 30, 5]
    # broker a told about 0 to 40 s, broker b about 0 to 10
    assert [row["messages_per_s"] for row in found] == pytest.approx([0.1, 0.1, 0.3, 0.075, 0.75, 0.5])
    assert found[4]["bytes_per_s"] == pytest.approx(75.0)
    assert unnamed_share(deliveries(events)) == pytest.approx(7 / 105)
    assert unnamed_share(deliveries(events).limit(0)) == 0.0


def test_the_broker_that_accepted_is_told_apart_from_the_one_that_delivered(spark: SparkSession) -> None:
    here = [traffic(10, "meter", "t", "desk", {1: 4}), traffic(10, "meter", "t", "desk", {1: 6}, broker="b")]
    events = frame(spark, events_table(here), events_table([traffic(10, "meter", "t", "book", {1: 6})], "b"))
    found = rows(demand_matrix(deliveries(events)))
    assert [(row["shard"], row["origin"], row["subscriber"], row["messages"]) for row in found] == [
        ("a", "a", "desk", 4),
        ("a", "b", "desk", 6),
        ("b", "b", "book", 6),
    ]
    problem = instance([row for row in found if row["origin"] == "b"], NetworkFile.of("ab"), name="x", homes={})
    # nobody has seen the publisher connect, but a broker has accepted its messages
    assert {(link.a, link.b) for link in problem.links} == {("book", "b"), ("desk", "a"), ("meter", "b")}


def test_a_client_is_where_it_connected_last(spark: SparkSession) -> None:
    told = [events_table([connected("desk", 5), connected("meter", 1)], "a"), events_table([connected("desk", 9)], "b")]
    assert {row["client"]: row["shard"] for row in rows(homes(frame(spark, *told)))} == {"desk": "b", "meter": "a"}


def row(publisher: str, topic: str, subscriber: str, per_s: float, level: int = 1, shard: str = "a") -> dict[str, Any]:
    return {
        "shard": shard, "origin": shard, "publisher": publisher, "topic": topic, "subscriber": subscriber,
        "level": level, "messages_per_s": per_s, "bytes_per_s": per_s * 100,
    }  # fmt: skip


MATRIX = [
    row("meter", "grid/1", "desk", 0.75, level=0),
    row("meter", "grid/1", "book", 0.3, level=0),
    row("meter", "grid/1", "book", 0.05, level=3),
    row("other", "grid/1", "book", 0.5),
    row("desk", "grid/cmd", "meter", 0.1, level=2, shard="b"),
    row("desk", "grid/cmd", "desk", 0.1, level=2),
    row("echo", "own", "echo", 9.0),
]
NETWORK = """{
  "brokers": [{"id": "a", "max_connections": 10}, {"id": "b"}],
  "links": [{"a": "a", "b": "b", "capacity": 16000, "cost": 2, "latency": 0.01}],
  "access": {"capacity": 12500, "cost": 1},
  "clients": {"book": "b"},
  "unmet_cost": 100
}"""


def test_the_planning_problem_of_a_matrix(tmp_path: Path) -> None:
    file = tmp_path / "network.json"
    file.write_text(NETWORK)
    problem = instance(MATRIX, NetworkFile.read(file), name="tuesday", homes={"desk": "b"})
    text = rendered(problem)
    assert msgspec.json.decode(text, type=InstanceDocument) == problem
    found = json.loads(text)
    assert (found["format"], found["name"], found["unmet_cost"]) == ("tieline-instance-1", "tuesday", 100)
    assert found["nodes"] == [
        {"id": "a", "roles": ["broker"], "max_connections": 10},
        {"id": "b", "roles": ["broker"]},
        {"id": "book", "roles": ["subscriber"]},
        {"id": "desk", "roles": ["publisher", "subscriber"]},
        {"id": "meter", "roles": ["publisher", "subscriber"]},
        {"id": "other", "roles": ["publisher"]},
    ]
    assert [(each["a"], each["b"], each["capacity"], each["cost"]) for each in found["links"]] == [
        ("a", "b", 16000, 2), ("book", "b", 12500, 1), ("desk", "b", 12500, 1), ("meter", "b", 12500, 1),
        ("other", "a", 12500, 1),
    ]  # fmt: skip
    assert found["topics"] == [
        {"id": "grid/1", "source": "meter", "rate": 75.0, "subscribers": ["book", "desk"], "class": 3},
        {"id": "grid/1", "source": "other", "rate": 50.0, "subscribers": ["book"], "class": 1},
        {"id": "grid/cmd", "source": "desk", "rate": 10.0, "subscribers": ["meter"], "class": 2},
    ]
    assert rendered(instance(MATRIX[::-1], NetworkFile.read(file), name="tuesday", homes={"desk": "b"})) == text
    # the planner understands it
    assert plan_document.parse(text).request_count == 4
    in_messages = instance(MATRIX, NetworkFile.read(file), name="tuesday", homes={}, unit="messages")
    assert in_messages.topics[0].rate == 0.75


def test_one_broker_needs_no_file() -> None:
    matrix = [each for each in MATRIX if each["shard"] == "a"]
    problem = instance(matrix, NetworkFile.of(each["shard"] for each in matrix), name="one", homes={})
    assert [node.id for node in problem.nodes if "broker" in node.roles] == ["a"]
    assert {link.b for link in problem.links} == {"a"}
    assert {link.capacity for link in problem.links} == {"none"}


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("nonsense", "is no network"),
        ('{"brokers": []}', "is no network"),
        ('{"brokers": [{"id": "a"}], "link": []}', "link"),
        ('{"brokers": [{"id": "a"}, {"id": "a"}]}', "the same id"),
        ('{"brokers": [{"id": "a"}], "links": [{"a": "a", "b": "x", "capacity": 1, "cost": 1}]}', '"x", which is no'),
        ('{"brokers": [{"id": "a"}], "links": [{"a": "a", "b": "a", "capacity": 1, "cost": 1}]}', "leads nowhere"),
        ('{"brokers": [{"id": "a"}], "links": [{"a": "a", "b": "a", "capacity": -1, "cost": 1}]}', "no network"),
        ('{"brokers": [{"id": "a"}], "clients": {"desk": "x"}}', 'at "x"'),
        ('{"brokers": [{"id": "a"}]}', 'at the broker "b", which the network lacks'),
        ('{"brokers": [{"id": "a"}, {"id": "b"}, {"id": "desk"}]}', "of a client and of a broker"),
    ],
)
def test_networks_that_cannot_be_meant(tmp_path: Path, network: str, said: str) -> None:
    file = tmp_path / "network.json"
    file.write_text(network)
    with pytest.raises(Unplannable, match=said):
        instance(MATRIX, NetworkFile.read(file), name="x", homes={"desk": "b"})
