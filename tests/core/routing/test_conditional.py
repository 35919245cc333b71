from __future__ import annotations

import pytest

from tests.core.content import EVENT, FILTER, content_settings
from tieline.conf.schema import Attribute, Event, Settings
from tieline.core.routing.conditional import Askers, Asking
from tieline.core.session import Session
from tieline.match.change import Memory
from tieline.match.events import Events
from tieline.match.where import parse
from tieline.wire.packets import Subscription


def asking(text: str, memory: Memory | None = None) -> Asking:
    options = Subscription(filter=f"{FILTER}?{text}")
    return Asking(options, 0, Session("s", 1, 1), None, FILTER, parse(text), memory or Memory(10, 10))


@pytest.mark.parametrize(
    ("filter_", "claims"), [(FILTER, 1), ("microgrid/7/pcc", 1), ("#", 1), ("other/#", 0), ("microgrid/+", 0)]
)
def test_only_types_whose_topics_a_filter_can_match_are_indexed(filter_: str, claims: int) -> None:
    askers = Askers(filter_, Events(content_settings()))
    assert len(list(askers.tables())) == claims


def test_every_table_knows_every_asker() -> None:
    twin = Event(topic="other/+", attributes=(Attribute("voltage"),))
    events = Events(Settings(event={"pcc": EVENT, "twin": twin}))
    askers = Askers("#", events)
    one, two = asking("voltage<5"), asking("changed(voltage)")
    askers.add(one)
    untyped = askers.table(events.untyped)
    askers.add(two)
    assert len(list(askers.tables())) == 3
    assert [len(table) for table in askers.tables()] == [2, 2, 2]
    assert askers.table(events.untyped) is untyped
    assert len(askers) == 2
    askers.remove(one)
    assert [len(table) for table in askers.tables()] == [1, 1, 1]
    askers.remove(two)
    assert not askers


def test_only_conditions_that_compare_with_what_was_sent_remember_it() -> None:
    assert asking("voltage<5").last is None
    last = asking("changed(voltage) and delta(phases) > 1").last
    assert last is not None
    assert last.names == ("voltage", "phases")


def test_whoever_leaves_forgets() -> None:
    memory = Memory(10, 10)
    askers = Askers(FILTER, Events(content_settings()))
    one = asking("changed(voltage)", memory)
    askers.add(one)
    assert one.last is not None
    one.last.note(b"t", {"voltage": 1.0})
    assert memory.kept == 1
    askers.remove(one)
    assert memory.kept == 0
