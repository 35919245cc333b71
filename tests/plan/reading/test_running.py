"""A network that runs, as an instance: sources, rates, and who wants what, against an oracle that knows no trees."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.core.figures.demand import DemandRow, Subscribed
from tieline.plan.flaws import Flawed
from tieline.plan.instance import UNLIMITED, Link, Node
from tieline.plan.reading.backbone import Access, Backbone, unlinked
from tieline.plan.reading.running import Party, Survey, Unit, observed
from tieline.wire.topics import matches

NAMES = ("hill", "mill", "dam")
BACKBONE = Backbone(
    brokers=tuple(Node(id=name, roles=("broker",)) for name in NAMES),
    links=(Link(a="hill", b="mill", capacity=10.0, cost=1.0), Link(a="mill", b="dam", capacity=9.0, cost=2.0)),
    access=Access(capacity=50.0, cost=0.5),
    unmet_cost=7.0,
)


def wants(client: str, filter_: str, share: str = "", *, is_conditional: bool = False) -> Subscribed:
    return Subscribed(client, filter_, share, is_conditional)


def test_clients_stand_at_their_brokers_and_want_what_others_publish() -> None:
    surveys = [
        Survey(
            broker="hill",
            seconds=2.0,
            flows=[
                DemandRow("pv-7", "pv/7", 1, 10, 300),
                DemandRow("pv-7", "own", 3, 2, 8),
                DemandRow("cam", "video", 0, 4, 4_000),
            ],
            subscriptions=[wants("pv-7", "own")],
        ),
        Survey(broker="mill", seconds=2.5, flows=[DemandRow("pv-8", "pv/8", 2, 5, 100)]),
        Survey(broker="dam", seconds=2.0, subscriptions=[wants("control", "pv/+"), wants("control", "pv/7")]),
    ]
    found = observed(surveys, BACKBONE, name="grid")
    instance = found.instance
    assert [(topic.id, topic.source, topic.rate, topic.level, topic.subscribers) for topic in instance.topics] == [
        ("pv/7", "pv-7", 150.0, 1, ("control",)),
        ("pv/8", "pv-8", 40.0, 2, ("control",)),
    ]
    assert {node.id: node.roles for node in instance.nodes} == {
        **dict.fromkeys(NAMES, ("broker",)),
        "control": ("subscriber",),
        "pv-7": ("publisher",),
        "pv-8": ("publisher",),
    }
    assert instance.links[:2] == BACKBONE.links
    assert {(link.a, link.b, link.capacity, link.cost) for link in instance.links[2:]} == {
        ("control", "dam", 50.0, 0.5),
        ("pv-7", "hill", 50.0, 0.5),
        ("pv-8", "mill", 50.0, 0.5),
    }
    assert (instance.name, instance.unmet_cost) == ("grid", 7.0)
    assert found.notes == ("topics left out, because nobody else subscribes to them: 2",)


def test_a_broker_may_stand_for_its_clients() -> None:
    surveys = [
        Survey(broker="hill", seconds=2.0, flows=[DemandRow("a", "t", 1, 2, 20), DemandRow("b", "t", 3, 6, 60)],
               subscriptions=[wants("c", "t")]),
        Survey(broker="dam", seconds=4.0, flows=[DemandRow("a", "t", 0, 4, 40)],
               subscriptions=[wants("d", "t"), wants("e", "#")]),
    ]  # fmt: skip
    instance = observed(surveys, BACKBONE, name="grid", unit="messages", party="broker").instance
    assert [(topic.id, topic.source, topic.rate, topic.level, topic.subscribers) for topic in instance.topics] == [
        ("t", "dam", 1.0, 0, ("hill",)),
        ("t", "hill", 4.0, 3, ("dam",)),
    ]
    assert {node.id: node.roles for node in instance.nodes} == {
        "hill": ("broker", "publisher", "subscriber"),
        "mill": ("broker",),
        "dam": ("broker", "publisher", "subscriber"),
    }
    assert instance.links == BACKBONE.links


def test_names_that_mean_several_nodes_are_told_apart() -> None:
    """A client that moved, one that is called like a broker, and one whose name looks as if it had been told apart."""
    surveys = [
        Survey(broker="hill", seconds=1.0, flows=[DemandRow("roams", "t", 1, 1, 1), DemandRow("mill", "t", 1, 1, 1)]),
        Survey(
            broker="mill", seconds=1.0, flows=[DemandRow("roams", "t", 1, 1, 1), DemandRow("roams@hill", "t", 1, 1, 1)]
        ),
        Survey(broker="dam", seconds=1.0, subscriptions=[wants("all", "#")]),
    ]
    instance = observed(surveys, BACKBONE, name="grid").instance
    at = {link.a: link.b for link in instance.links[2:]}
    assert at == {
        "all": "dam",
        "mill@hill": "hill",
        "roams@hill@hill": "hill",
        "roams@mill": "mill",
        "roams@hill": "mill",
    }
    assert {topic.source for topic in instance.topics} == at.keys() - {"all"}


def test_what_an_instance_cannot_show_is_said() -> None:
    surveys = [
        Survey(broker="hill", seconds=1.0, unnamed=12, flows=[DemandRow("p", "a/b", 1, 1, 1)]),
        Survey(
            broker="dam",
            seconds=1.0,
            subscriptions=[
                wants("s", "a/+", is_conditional=True),
                wants("one", "a/#", "g"),
                wants("two", "a/#", "g"),
                wants("two", "a/b", "g"),
                wants("two", "$SYS/#"),
            ],
        ),
    ]
    found = observed(surveys, unlinked(("hill", "dam")), name="grid")
    assert found.instance.topics[0].subscribers == ("$share/g/a/#", "$share/g/a/b", "s")
    assert found.notes == (
        "subscriptions with a condition, which count as if they wanted every message: 1",
        "groups that share their messages, each of which counts as one subscriber at its broker: 2",
        "messages at hill left out, because there were too many topics: 12",
    )


def test_where_nothing_is_published_nothing_can_be_planned() -> None:
    with pytest.raises(Flawed, match="nothing was published at hill, dam in that time"):
        observed([Survey(broker="hill", seconds=1.0), Survey(broker="dam", seconds=1.0)], BACKBONE, name="x")


_TOPIC = st.lists(st.sampled_from(["a", "b", "$x"]), min_size=1, max_size=3).map("/".join)
_FILTER = st.tuples(st.lists(st.sampled_from(["a", "b", "$x", "+"]), max_size=2), st.sampled_from(["a", "+", "#"])).map(
    lambda parts: "/".join([*parts[0], parts[1]])
)
_SURVEY = st.tuples(
    st.lists(st.tuples(st.sampled_from("pqr"), _TOPIC, st.integers(1, 9)), max_size=5, unique_by=lambda flow: flow[:2]),
    st.lists(st.tuples(st.sampled_from("pqstu"), _FILTER), max_size=4, unique=True),
)


@given(
    drawn=st.lists(_SURVEY, min_size=3, max_size=3),
    unit=st.sampled_from(["bytes", "messages"]),
    party=st.sampled_from(["client", "broker"]),
)
def test_requests_are_what_every_filter_and_every_topic_together_give(
    drawn: list[tuple[list[tuple[str, str, int]], list[tuple[str, str]]]], unit: Unit, party: Party
) -> None:
    surveys = [
        Survey(
            broker=broker,
            seconds=2.0,
            flows=[DemandRow(client, topic, 1, count, 3 * count) for client, topic, count in flows],
            subscriptions=[wants(client, filter_) for client, filter_ in wishes],
        )
        for broker, (flows, wishes) in zip(NAMES, drawn, strict=True)
    ]
    # a node is a client at a broker, or the broker itself
    rates: defaultdict[tuple[str, tuple[str, str]], float] = defaultdict(float)
    for broker, (flows, _) in zip(NAMES, drawn, strict=True):
        for client, topic, count in flows:
            rates[topic, (client if party == "client" else "", broker)] += count * (3 if unit == "bytes" else 1) / 2
    requests = {
        (topic, source, node)
        for topic, source in rates
        for broker, (_, wishes) in zip(NAMES, drawn, strict=True)
        for client, filter_ in wishes
        if matches(filter_, topic) and (node := (client if party == "client" else "", broker)) != source
    }
    if not rates:
        with pytest.raises(Flawed):
            observed(surveys, BACKBONE, name="x", unit=unit, party=party)
        return
    instance = observed(surveys, BACKBONE, name="x", unit=unit, party=party).instance
    home = {link.a: (link.a.partition("@")[0], link.b) for link in instance.links[2:]}
    home |= {name: ("", name) for name in NAMES}
    assert {(t.id, home[t.source], home[node]) for t, node in instance.requests()} == requests
    assert {(t.id, home[t.source]): t.rate for t in instance.topics} == {
        (topic, source): pytest.approx(rates[topic, source]) for topic, source, _ in requests
    }
    assert instance.request_count == len(requests)


def test_links_of_clients_carry_everything_unless_told() -> None:
    surveys = [
        Survey(broker="hill", seconds=1.0, flows=[DemandRow("p", "t", 1, 1, 1)], subscriptions=[wants("s", "t")]),
    ]
    instance = observed(surveys, unlinked(("hill",)), name="x").instance
    assert {(link.a, link.capacity, link.cost) for link in instance.links} == {("p", UNLIMITED, 0), ("s", UNLIMITED, 0)}
