from __future__ import annotations

import pytest

from tests.core.content import EVENT, FILTER, content_settings
from tests.kits.sessions import lone_session
from tieline.conf.schema import Attribute, Event, Settings
from tieline.core.routing.conditional import ConditionalSubscriptions
from tieline.core.routing.route import ConditionalSubscription
from tieline.match.change import ChangeMemory
from tieline.match.events import Events
from tieline.match.where import parse
from tieline.wire.packets import Subscription


def asking(text: str, memory: ChangeMemory | None = None) -> ConditionalSubscription:
    options = Subscription(filter=f"{FILTER}?{text}")
    return ConditionalSubscription(
        options, 0, lone_session("s", 1, 1), None, FILTER, parse(text), memory or ChangeMemory(10, 10)
    )


@pytest.mark.parametrize(
    ("filter_", "claims"), [(FILTER, 1), ("microgrid/7/pcc", 1), ("#", 1), ("other/#", 0), ("microgrid/+", 0)]
)
def test_only_types_whose_topics_a_filter_can_match_are_indexed(filter_: str, claims: int) -> None:
    events = Events(content_settings())
    found = [table.event for table in ConditionalSubscriptions(filter_, events).tables()]
    assert len([event for event in found if event is not events.untyped]) == claims
    # where a message of no type can come, its table is there before it, and its first publisher waits for nothing
    assert (events.untyped in found) == (filter_ not in {FILTER, "microgrid/7/pcc"})


def test_every_table_knows_every_asker() -> None:
    twin = Event(topic="other/+", attributes=(Attribute("voltage"),))
    events = Events(Settings(event={"pcc": EVENT, "twin": twin}))
    conditionals = ConditionalSubscriptions("#", events)
    one, two = asking("voltage<5"), asking("changed(voltage)")
    conditionals.add(one)
    untyped = conditionals.table(events.untyped)
    conditionals.add(two)
    assert len(list(conditionals.tables())) == 3
    assert [len(table) for table in conditionals.tables()] == [2, 2, 2]
    assert conditionals.table(events.untyped) is untyped
    assert len(conditionals) == 2
    conditionals.remove(one)
    assert [len(table) for table in conditionals.tables()] == [1, 1, 1]
    conditionals.remove(two)
    assert not conditionals


def test_only_conditions_that_compare_with_what_was_sent_remember_it() -> None:
    assert asking("voltage<5").last is None
    last = asking("changed(voltage) and delta(phases) > 1").last
    assert last is not None
    assert last.names == ("voltage", "phases")


def test_whoever_leaves_forgets() -> None:
    memory = ChangeMemory(10, 10)
    conditionals = ConditionalSubscriptions(FILTER, Events(content_settings()))
    one = asking("changed(voltage)", memory)
    conditionals.add(one)
    assert one.last is not None
    one.last.note(b"t", {"voltage": 1.0})
    assert memory.kept == 1
    conditionals.remove(one)
    assert memory.kept == 0
