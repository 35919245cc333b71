"""Heat from outside: which entry speaks of a topic, what a table must not be, when the broker's own counts again."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_backlog import AWHILE, CLASSES, pair, publish, session_of
from tests.core.test_backlog import settings as configured
from tests.kits.examples import examples
from tests.kits.world import Client, World, topics
from tieline.conf.schema import Priority, Settings
from tieline.core.figures.traffic import hottest
from tieline.core.message import Bundle
from tieline.core.routing import heat_table as heat_module
from tieline.core.routing.heat_table import MOST_PERIOD_S, HeatError, HeatTable
from tieline.wire.topics import matches

LEVELS = 20


def table(**entries: float) -> HeatTable:
    made = HeatTable(LEVELS)
    for filter_, heat in entries.items():
        made.add(filter_, heat)
    return made


def warm(world: World, entries: dict[str, float], period_s: float = 60.0) -> None:
    world.broker.heat_source.put(table(**entries), period_s, world.now)


def heats(client: Client) -> dict[str, float]:
    queued = [item for item, _ in session_of(client).queue.entries]
    items = [each for item in queued for each in (item.bursts() if isinstance(item, Bundle) else (item,))]
    return {item.topic.decode(): item.heat for item in items}


# --- which entry speaks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "heat"),
    [
        ("a/b/c", 1),
        ("a/b/d", 2),
        ("a/x/c", 3),
        ("a/x/y", 4),
        ("a/b", 5),
        ("a", 6),
        ("b", 7),
        ("b/c", 8),
        ("$SYS/x", None),
    ],
)
def test_the_most_specific_entry_speaks(topic: str, heat: float | None) -> None:
    entries = {"a/b/c": 1, "a/b/+": 2, "a/+/c": 3, "a/+/#": 4, "a/b": 5, "a/#": 6, "+": 7, "#": 8}
    for order in (list(entries), list(reversed(entries))):
        assert table(**{filter_: entries[filter_] for filter_ in order}).of(topic) == heat


LEVEL = st.sampled_from(["a", "b", "+"])
FILTERS = st.builds(
    lambda levels, rest: "/".join([*levels, *(["#"] if rest else [])]) or "#",
    st.lists(LEVEL, max_size=3),
    st.booleans(),
)
TOPICS = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map("/".join)


def specificity(filter_: str) -> tuple[int, ...]:
    """Level by level: the end, a name, +, #."""
    ranks = tuple({"+": 1, "#": 0}.get(level, 2) for level in filter_.split("/"))
    return ranks if filter_.endswith("#") else (*ranks, 3)


@given(st.dictionaries(FILTERS, st.floats(0, 1e9), max_size=12), TOPICS)
def test_as_if_every_entry_were_tried(entries: dict[str, float], topic: str) -> None:
    fits = [filter_ for filter_ in entries if matches(filter_, topic)]
    expected = entries[max(fits, key=specificity)] if fits else None
    assert table(**entries).of(topic) == expected


# --- what a table must not be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filter_", "heat", "said"),
    [
        ("a", nan, "finite"),
        ("a", inf, "finite"),
        ("a", -0.5, "from zero up"),
        ("a", 10**400, "finite"),
        ("a", True, "no number"),
        ("a", "5", "no number"),
        ("a", None, "no number"),
        ("", 1, "empty"),
        ("a/#/b", 1, "# is not the whole last level"),
        ("a+/b", 1, "whole level"),
        ("a\0", 1, "cannot be a topic"),
        ("x" * 70_000, 1, "cannot be a topic"),
        ("\ud800", 1, "no text"),
        ("$share/g/a", 1, "a way to subscribe"),
        ("$where/x%3E1/a", 1, "a way to subscribe"),
        ("/".join("a" * (LEVELS + 1)), 1, "more than 20 levels"),
    ],
)
def test_what_an_entry_must_not_be(filter_: str, heat: float, said: str) -> None:
    made = table(kept=1)
    with pytest.raises(HeatError) as refused:
        made.add(filter_, heat)
    assert said in str(refused.value) and str(refused.value).isprintable() and len(str(refused.value)) < 250
    assert len(made) == 1 and made.of("kept") == 1


def test_a_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat_module, "MOST_ENTRIES", 3)
    made = table(**{"a": 1, "b": 2, "c/#": 3})
    for filter_ in ("d", "d/#"):
        with pytest.raises(HeatError, match="more than 3 entries"):
            made.add(filter_, 1)
    for filter_ in ("a", "c/#"):
        with pytest.raises(HeatError, match=f'"{filter_}" is in the table twice'):
            made.add(filter_, 1)
    assert (len(made), made.of("a"), made.of("c/d"), made.of("d")) == (3, 1, 3, None)
    assert repr(made) == "<HeatTable 2 topics, 1 filters>"


def test_deep_filters_count_for_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat_module, "MOST_BYTES", 10_000)
    made = HeatTable(1_000)
    made.add("a/" * 20 + "#", 1)
    with pytest.raises(HeatError, match="of memory"):
        made.add("b/" * 20 + "#", 1)


@pytest.mark.parametrize("period_s", [0, -1, 0.99, MOST_PERIOD_S + 1, nan, inf])
def test_a_period_is_bounded_and_a_broken_table_changes_nothing(period_s: float) -> None:
    world = World()
    warm(world, {"a": 5})
    with pytest.raises(HeatError, match="holds for 1 to 86,400 seconds"):
        world.broker.heat_source.put(table(a=7), period_s, world.now)
    with pytest.raises(HeatError, match="is empty"):
        world.broker.heat_source.put(HeatTable(LEVELS), 60.0, world.now)
    source = world.broker.heat_source
    assert source.table is not None and source.table.of("a") == 5 and source.left_s(world.now) == 60.0


# --- what it does -----------------------------------------------------------------------------------------------------


def test_given_where_the_table_speaks_own_elsewhere() -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    other = world.client("o")
    other.subscribe("b")
    publish(publisher, "a", "b", "c")  # remembered, each with the broker's own heat
    warm(world, {"a": 0.5, "c/#": 9})
    publish(publisher, "a", "b", "c", "c/d")
    publish(publisher, "a", "b", "c", "c/d")  # by the shortcut
    assert heats(subscriber) == {"a": 0.5, "b": 2, "c": 9, "c/d": 9}
    assert world.broker.routes.known[b"c"] is not world.broker.routes.known[b"c/d"]


@pytest.mark.parametrize("qos", [0, 1])
def test_messages_that_take_any_way_get_it(qos: int) -> None:
    world = World(configured())
    subscriber, publisher = pair(world, qos=1)
    warm(world, {"#": 7})
    for _ in range(2):
        publisher.publish("t", b"by the shortcut, the second time", qos=qos)
    publisher.publish("u", b"by the general way", qos=qos, content_type="x")
    assert heats(subscriber) == {"t": 7, "u": 7}


def test_deliveries_do_not_add_to_a_given_heat() -> None:
    world = World(configured(heat_deliveries=10.0, period=1.0))
    subscriber, publisher = pair(world)
    warm(world, {"a": 3})
    for _ in range(3):
        publish(publisher, "a", "b", "a", "b")
        world.advance(1)
    publish(publisher, "a", "b")
    found, own = [item.heat for item, _ in session_of(subscriber).queue.entries][-2:]
    assert found == 3 < own


def test_churn_and_reload_keep_the_table() -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    warm(world, {"a": 30})
    publish(publisher, "a")
    world.client("o").subscribe("a")
    publish(publisher, "a")
    world.broker.routes.reset()
    publish(publisher, "a")
    assert [item.heat for item, _ in session_of(subscriber).queue.entries] == [30, 30, 30]


NAMES = [f"1/{letter}" for letter in "abcdefgh"]


@pytest.mark.parametrize("policy", ["feedback", "heat"])
@examples(40)
@given(
    numbers=st.lists(st.floats(0, 1e6, allow_nan=False), min_size=8, max_size=8, unique=True),
    order=st.permutations(NAMES),
)
def test_topics_of_one_level_go_as_the_numbers_say(policy: str, numbers: list[float], order: list[str]) -> None:
    world = World(configured(policy=policy))
    subscriber, publisher = pair(world)
    entries = dict(zip(NAMES, numbers, strict=True))
    warm(world, entries)
    publish(publisher, "1/first", *order)
    world.advance(AWHILE)
    subscriber.resume()
    sent = [topic for topic in topics(subscriber.messages()) if topic != "1/first"]
    assert sent == sorted(order, key=lambda topic: -entries[topic])


def test_levels_go_before_heat() -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    warm(world, {"0/a": 1e9, "3/a": 0})
    publish(publisher, "0/a", "1/a", "3/a")
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["3/a", "1/a", "0/a"]


def test_without_any_level_too_the_table_orders() -> None:
    world = World()
    subscriber, publisher = pair(world)
    warm(world, {"b": 2, "c": 3})
    publish(publisher, "a", "b", "c")
    world.advance(AWHILE)
    subscriber.resume()
    assert topics(subscriber.messages()) == ["c", "b", "a"]


# --- when it ends -----------------------------------------------------------------------------------------------------


@examples(40)
@given(period_s=st.floats(1, 1000), early=st.floats(1e-3, 0.999), again=st.booleans())
def test_it_holds_to_the_end_of_its_period_and_not_a_moment_longer(period_s: float, early: float, again: bool) -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    warm(world, {"a": 5}, period_s)
    if again:
        world.advance(period_s / 2)
        warm(world, {"a": 6}, period_s)  # the first one's end is not the second one's
    ends = world.now + period_s
    world.advance(period_s * early)
    publish(publisher, "a")
    world.advance(ends - world.now)
    publish(publisher, "a")
    assert [item.heat for item, _ in session_of(subscriber).queue.entries] == [6 if again else 5, 1]
    source = world.broker.heat_source
    assert (source.name, source.left_s(world.now), source.table) == ("own", 0.0, None)


def test_cleared_it_is_gone_at_once_and_its_timer_with_it() -> None:
    world = World(configured())
    subscriber, publisher = pair(world)
    warm(world, {"a": 5}, 10.0)
    assert world.broker.heat_source.clear()
    assert not world.broker.heat_source.clear()
    publish(publisher, "a")
    warm(world, {"a": 6}, 100.0)
    world.advance(10.0)  # when the first one would have ended
    publish(publisher, "a")
    assert [item.heat for item, _ in session_of(subscriber).queue.entries] == [1, 6]


# --- what is said of it -----------------------------------------------------------------------------------------------


def test_operators_see_the_source() -> None:
    world = World(Settings(class_=CLASSES, priority=Priority()))
    _, publisher = pair(world)
    warm(world, {"a": 2.5, "z": 4})
    publish(publisher, "a", "b")
    world.advance(0.25)
    assert hottest(world.broker.routes) == [("a", 2.5, "given"), ("b", 1, "own")]

    def said() -> list[str]:
        values = world.broker.system.values(world.now)
        return [values[f"$SYS/broker/tieline/heat/{name}"] for name in ("source", "entries", "left")]

    assert said() == ["given", "2", "60"]
    world.advance(60)
    assert said() == ["own", "0", "0"]
    publish(publisher, "a")
    assert ("a", 1, "own") in hottest(world.broker.routes)
    told = [event.text for event in world.broker.account.events if event.kind == "heat"]
    assert told == ["2 entries for 60 s", "expired: the broker's own counts again"]


@given(st.dictionaries(FILTERS, st.floats(0, 100), max_size=20), st.integers(0, 5))
def test_the_hottest_entries(entries: dict[str, float], most: int) -> None:
    expected = sorted(((heat, filter_) for filter_, heat in entries.items()), reverse=True)[:most]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heat_module, "MOST_SHOWN", 5)
        assert table(**entries).hottest(most) == [(filter_, heat) for heat, filter_ in expected]
