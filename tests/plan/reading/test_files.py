from __future__ import annotations

from pathlib import Path

import pytest

from tieline.plan.arrays import arrays
from tieline.plan.flaws import Flawed
from tieline.plan.models.solve import solve_model
from tieline.plan.reading import sndlib
from tieline.plan.reading.document import write
from tieline.plan.reading.load import load
from tieline.plan.reading.networks import parse_graphml
from tieline.plan.run import Run

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Longitude" attr.type="double" for="node" id="d1" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d2" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">1.0</data><data key="d2">2.0</data></node>
    <node id="1"><data key="d1">4.0</data><data key="d2">6.0</data></node>
    <node id="2" />
    <edge source="0" target="1"><data key="d3">10</data></edge>
    <edge source="1" target="0"><data key="d3">5</data></edge>
    <edge source="1" target="2" />
    <edge source="2" target="2" />
  </graph>
</graphml>
"""

SNDLIB = """?SNDlib native format; type: network; version: 1.0
# network of three

META (
  granularity = none
)

NODES (
  Aachen ( 6.04 50.76 )
  Bonn ( 7.10 50.73 )
  Cologne ( 6.96 50.94 )
)

LINKS (
  L1 ( Aachen Bonn ) 0.00 0.00 2.00 0.00 ( 40.00 1.00 )
  L2 ( Bonn Cologne ) 155.00 0.00 0.00 0.00 ( 40.00 1.00 )
  L3 ( Cologne Aachen ) 0.00 0.00 1.00 0.00 ( )
)

DEMANDS (
  D1 ( Aachen Bonn ) 1 30.00 UNLIMITED
  D2 ( Aachen Cologne ) 1 20.00 UNLIMITED
  D3 ( Bonn Aachen ) 1 20.00 UNLIMITED
)
"""


def test_graphml_gives_brokers_and_joins_parallel_links() -> None:
    found = parse_graphml(GRAPHML, name="zoo")
    assert found.ids == ("0", "1", "2")
    assert found.pairs.tolist() == [[0, 1], [1, 2]]
    assert found.capacity[0] == 15.0
    assert found.capacity[1] != found.capacity[1]
    assert found.length[0] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GRAPHML.replace('target="2" />', 'target="9" />', 1), 'link 2 (1 - 9): there is no node "9"'),
        (GRAPHML.replace('node id="2"', 'node id="1"'), "two nodes have the same id"),
        (GRAPHML.replace(">4.0<", ">east<"), 'node 1 (1): Longitude is "east", not a number'),
        ("<graphml/>", "there is no graph"),
        ("<graph", "this is not XML"),
        ("<!DOCTYPE lol><graph/>", "document type"),
    ],
)
def test_mistakes_in_graphml_are_named(text: str, sentence: str) -> None:
    with pytest.raises(Flawed) as caught:
        parse_graphml(text, name="zoo")
    assert sentence in str(caught.value)


def test_sndlib_gives_an_instance_that_can_be_planned() -> None:
    instance = sndlib.parse(SNDLIB, name="rhine")
    links = {(link.a, link.b): link for link in instance.links}
    assert links["Aachen", "Bonn"].capacity == 40.0
    assert links["Bonn", "Cologne"].capacity == 155.0
    assert links["Bonn", "Cologne"].cost == pytest.approx(0.252)
    assert links["Cologne", "Aachen"].capacity == float("inf")
    assert [(topic.source, topic.subscribers) for topic in instance.topics] == [
        ("pub:Aachen", ("sub:Bonn",)),
        ("pub:Aachen", ("sub:Cologne",)),
        ("pub:Bonn", ("sub:Aachen",)),
    ]
    assert solve_model(arrays(instance), Run()).unmet == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (SNDLIB.replace("( Bonn Cologne )", "( Bonn Kiel )"), 'link L2 (Bonn - Kiel): there is no node "Kiel"'),
        (SNDLIB.replace("D3 ( Bonn", "D3 ( Ulm"), 'line 23: demand D3 (Ulm - Aachen): there is no node "Ulm"'),
        (SNDLIB.replace("30.00 UNLIMITED", "30.00"), "is not what this section holds"),
        (SNDLIB.replace("155.00", "many"), '"many" is not a number'),
        ("NODES (\n)", "SNDlib's native format"),
    ],
)
def test_mistakes_in_sndlib_are_named(text: str, sentence: str) -> None:
    with pytest.raises(Flawed) as caught:
        sndlib.parse(text, name="rhine")
    assert sentence in str(caught.value)


def test_load_knows_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / "a.graphml").write_text(GRAPHML)
    (tmp_path / "b.txt").write_text(SNDLIB)
    populated = load(str(tmp_path / "a.graphml"), topics=2, requests=4, seed=1)
    assert (len(populated.topics), populated.request_count) == (2, 4)
    write(populated, tmp_path / "c.json")
    assert load(str(tmp_path / "c.json")) == populated
    assert load(str(tmp_path / "b.txt")).name == "b"
    with pytest.raises(Flawed, match="is expected"):
        load("network.csv")


def test_topologies_by_name() -> None:
    pytest.importorskip("topohub")
    instance = load("topohub:sndlib/geant", topics=40, requests=120)
    assert sum(node.is_broker for node in instance.nodes) == 22
    assert sum(link.b.endswith(instance.nodes[0].id) or link.a == instance.nodes[0].id for link in instance.links) > 2
    assert load("topohub:topozoo/Abilene").request_count == 15
    with pytest.raises(Flawed, match='no topology "moon"'):
        load("topohub:moon")
