"""The links between brokers that run, from every kind of file, and a sentence for whatever does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.reading.test_files import GRAPHML, SNDLIB
from tieline.plan.flaws import Flawed
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic
from tieline.plan.reading import document
from tieline.plan.reading.backbone import backbone, unlinked

NAMES = ("hill", "mill", "dam")
TABLE = "a, b, capacity, cost, latency\nhill, mill, 10, 1,\nmill, dam, none, 2, 0.5\nhill, dam,, 3,\n"
NETWORK = """{"brokers": [{"id": "hill"}, {"id": "mill", "max_connections": 4}, {"id": "dam"}],
    "links": [{"a": "hill", "b": "mill", "capacity": 10, "cost": 1},
              {"a": "mill", "b": "dam", "capacity": "none", "cost": 2, "latency": 0.5}],
    "access": {"capacity": 7, "cost": 0.25}, "clients": {"meter-2": "hill"}, "unmet_cost": 9}"""


def put(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table(tmp_path: Path) -> None:
    source = put(tmp_path, "links.csv", TABLE)
    found = backbone(source, NAMES, capacity=4.0)
    assert found.brokers == tuple(Node(id=name, roles=("broker",)) for name in NAMES)
    assert found.links == (
        Link(a="hill", b="mill", capacity=10.0, cost=1.0),
        Link(a="mill", b="dam", capacity=UNLIMITED, cost=2.0, latency=0.5),
        Link(a="hill", b="dam", capacity=4.0, cost=3.0),
    )
    assert backbone(source, NAMES).links[2].capacity == UNLIMITED


def test_the_network_file_of_the_pipeline(tmp_path: Path) -> None:
    found = backbone(put(tmp_path, "network.json", NETWORK), NAMES)
    assert [node.max_connections for node in found.brokers] == [None, 4, None]
    assert [link.capacity for link in found.links] == [10.0, UNLIMITED]
    assert (found.access.capacity, found.access.cost, found.unmet_cost) == (7.0, 0.25, 9.0)
    bare = '{"links": [{"a": "hill", "b": "mill", "capacity": 1, "cost": 1}]}'
    found = backbone(put(tmp_path, "bare.json", bare), ("mill", "hill"))
    assert [node.id for node in found.brokers] == ["mill", "hill"]
    assert (found.access.capacity, found.access.cost, found.unmet_cost) == (UNLIMITED, 0.0, None)


def test_of_an_instance_only_brokers_and_their_links_are_taken(tmp_path: Path) -> None:
    instance = Instance(
        name="x",
        nodes=(
            Node(id="hill", roles=("broker", "publisher"), at=(0.0, 1.0)),
            Node(id="mill", roles=("broker",)),
            Node(id="client", roles=("subscriber",)),
        ),
        links=(
            Link(a="client", b="mill", capacity=1.0, cost=5.0),
            Link(a="hill", b="mill", capacity=3.0, cost=2.0),
        ),
        topics=(Topic(id="t", source="hill", rate=1.0, subscribers=("client",)),),
        unmet_cost=4.0,
    )
    document.write(instance, tmp_path / "instance.json")
    found = backbone(str(tmp_path / "instance.json"), ("hill", "mill"))
    assert found.brokers == (Node(id="hill", roles=("broker",), at=(0.0, 1.0)), Node(id="mill", roles=("broker",)))
    assert found.links == (Link(a="hill", b="mill", capacity=3.0, cost=2.0),)
    assert found.unmet_cost == 4.0


def test_graphml_sndlib_and_topologies(tmp_path: Path) -> None:
    zoo = backbone(put(tmp_path, "zoo.graphml", GRAPHML), ("0", "1", "2"), capacity=8.0)
    assert [(link.a, link.b, link.capacity, link.cost) for link in zoo.links] == [
        ("0", "1", 15.0, 1),
        ("1", "2", 8.0, 1),
    ]
    assert zoo.brokers[0].at == (1.0, 2.0)
    three = backbone(put(tmp_path, "three.txt", SNDLIB), ("Aachen", "Bonn", "Cologne"))
    assert (three.links[0].capacity, three.links[0].cost) == (40.0, 2.0)
    assert len(three.links) == 3 and [node.roles for node in three.brokers] == [("broker",)] * 3
    pytest.importorskip("topohub")
    with pytest.raises(
        Flawed, match=r'topohub:gabriel/25/0: link 0 \(R\d+ - R\d+\): "R\d+" is none of the brokers hill'
    ):
        backbone("topohub:gabriel/25/0", ("hill",))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "l.csv",
            TABLE.replace("mill, dam", "mil, dam"),
            'link 1 (mil - dam): "mil" is none of the brokers hill, mill, dam',
        ),
        ("l.csv", "a,b,capacity,cost\nhill,mill,1,1\n", 'no link leads to the broker "dam"'),
        ("l.csv", "a,b,capacity\nhill,mill,1\n", 'the first line has no column "cost"'),
        ("l.csv", "", 'the first line has no column "a"'),
        ("l.csv", TABLE.replace("10, 1", "ten, 1"), 'line 2 (hill - mill): capacity is "ten", which is no number'),
        ("l.csv", TABLE.replace(" 2, 0.5", " , 0.5"), 'line 3 (mill - dam): cost is "", which is no number'),
        ("l.csv", TABLE + "hill\n", "line 5: it does not have as many columns as the first line"),
        ("l.csv", TABLE + "hill,dam,1,1,1,1\n", "line 5: it does not have as many columns as the first line"),
        ("l.csv", TABLE + "dam,hill,1,1,\n", "link 3 (dam - hill): link 2 joins the same two nodes"),
        ("l.csv", TABLE.replace("10, 1", "-10, 1"), "link 0 (hill - mill): capacity is negative"),
        ("l.csv", TABLE.replace("10, 1", "nan, 1"), "link 0 (hill - mill): capacity is not a number"),
        ("n.json", NETWORK.replace('"b": "mill"', '"b": "nil"'), 'link 0 (hill - nil): there is no node "nil"'),
        ("n.json", NETWORK.replace('{"id": "dam"}', '{"id": "dam"}, {"id": "sea"}'), "node 3 (sea): it is none of the"),
        ("n.json", NETWORK.replace('"capacity": 10', '"capacity": "big"'), "link 0 (hill - mill): capacity: "),
        ("n.json", NETWORK.replace('"cost": 0.25', '"price": 0.25'), "access: "),
        ("n.json", NETWORK.replace('"unmet_cost"', '"unmet"'), "the instance: Object contains unknown field"),
        ("n.json", '{"links": [3]}', "link 0: "),
        ("n.json", "[]", 'it has no list "links"'),
        ("n.json", "{", "this is not JSON"),
        ("n.xml", "", "a name that ends in .csv, .json, .graphml or .txt"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    source = put(tmp_path, name, text)
    with pytest.raises(Flawed) as caught:
        backbone(source, NAMES)
    assert str(caught.value).startswith(source)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["none.csv", "none.json", "none.graphml", "none.txt"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(Flawed, match="No such file"):
        backbone(str(tmp_path / name), NAMES)


def test_a_table_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes(b"a,b,capacity,cost\n\xff,b,1,1\n")
    with pytest.raises(Flawed, match="this is no table"):
        backbone(str(tmp_path / "l.csv"), NAMES)


def test_a_broker_alone_needs_no_link(tmp_path: Path) -> None:
    assert backbone(put(tmp_path, "n.json", '{"brokers": [{"id": "hill"}], "links": []}'), ("hill",)).links == ()
    assert unlinked(("hill", "mill")).links == ()
