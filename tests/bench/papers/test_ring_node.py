"""A broker with the ring paper's subscriptions: what is measured of it, and what is compared."""

from __future__ import annotations

import pytest

from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.ring import claims, node


def test_a_broker_delivers_to_those_who_want_it_and_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "COUNTS", {"quick": (100,)})
    monkeypatch.setattr(node, "EVENTS", {"quick": 3})
    monkeypatch.setattr(node, "IDLE_S", {"quick": 0.2})
    (table,) = node.measure(Request())
    assert table.words("way") == [node.CONDITIONS, node.ONE_TOPIC]
    assert table.flaws() == []
    assert all(value > 5.0 for value in table.column("megabytes"))
    assert all(value > 0.0 for value in table.column("event_us"))
    # two clients of fifty random boxes each: with one topic both get everything, with conditions at most
    assert table.where(way=node.ONE_TOPIC).column("deliveries") == [2.0]
    assert table.where(way=node.CONDITIONS).column("deliveries")[0] <= 2.0


def test_who_wants_an_event_is_found_by_looking_at_every_box() -> None:
    wishes = [[[(0.0, 0.5), (0.0, 1.0)]], [[(0.5, 1.0), (0.0, 0.2)], [(0.4, 0.6), (0.9, 1.0)]]]
    events = [[0.5, 0.95], [0.7, 0.5], [0.1, 0.1]]
    assert node._wanted(wishes, events, node.CONDITIONS) == [[0, 1], [], [0]]
    assert node._wanted(wishes, events, node.ONE_TOPIC) == [[0, 1]] * 3


def weighed(megabytes: float, mhz: float | None) -> dict[str, Table]:
    columns = ("way", "subscriptions", "seed", "megabytes", "mhz")
    rows = [
        (way, count, 0, value * count / 3_000, None if mhz is None else clock)
        for way, value, clock in ((node.CONDITIONS, megabytes, mhz), (node.ONE_TOPIC, 50.0, 40.0))
        for count in (1_000, 3_000)
    ]
    return {"broker": Table("broker", dict.fromkeys(columns, ""), rows)}


@pytest.mark.parametrize(
    ("megabytes", "mhz", "expected"),
    [
        (33.0, 30.0, ["reproduced", "reproduced", "reproduced", "reproduced"]),
        (86.0, 80.0, ["not reproduced"] * 4),
        (84.0, 39.0, ["reproduced", "not reproduced", "reproduced", "in part"]),
        (33.0, None, ["reproduced", "reproduced", "not measured", "not measured"]),
    ],
)
def test_the_sentences_follow_from_3000_subscriptions(megabytes: float, mhz: float | None, expected: list[str]) -> None:
    found = [claim.judgement.verdict for claim in claims.node(weighed(megabytes, mhz))]
    assert found == expected
