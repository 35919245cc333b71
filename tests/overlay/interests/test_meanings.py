"""Conditions are asked where messages are accepted if they mean the same there, and only then."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tests.kits.group_world import GroupWorld
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Attribute, Content, Event, Settings
from tieline.overlay.interests.meanings import Meanings

PCC = Event(topic="grid/+/pcc", attributes=(Attribute("v", bounds=(0, 100)),))
OTHER_PCC = Event(topic="grid/+/pcc", attributes=(Attribute("v", bounds=(0, 100), path="w"),))
SITE = Event(topic="site/#", attributes=(Attribute("t"),))


def _of(filter_: str, *types: Event, untyped_bytes: int = 65_536) -> int:
    declared = {f"type-{number}": event for number, event in enumerate(types)}
    return Meanings(Settings(event=declared, content=Content(untyped_bytes=untyped_bytes))).fingerprint(filter_)


@pytest.mark.parametrize(
    ("filter_", "one", "other", "is_same"),
    [
        ("grid/#", (PCC,), (PCC,), True),
        # in another order, by another name
        ("#", (PCC, SITE), (SITE, PCC), True),
        # declared on other topics
        ("grid/1/pcc", (PCC,), (PCC, SITE), True),
        ("plant/+", (PCC,), (SITE,), True),
        ("grid/+/load", (PCC,), (OTHER_PCC,), True),
        ("grid/1/pcc", (PCC,), (OTHER_PCC,), False),
        ("grid/#", (PCC,), (), False),
        ("+/1/#", (PCC,), (PCC, SITE), False),
    ],
)
def test_types_count_where_their_topics_overlap(
    filter_: str, one: Sequence[Event], other: Sequence[Event], is_same: bool
) -> None:
    assert (_of(filter_, *one) == _of(filter_, *other)) == is_same


def test_how_much_is_searched_counts() -> None:
    assert _of("a", PCC) != _of("a", PCC, untyped_bytes=10)


def test_very_many_filters_are_not_remembered() -> None:
    meanings = Meanings(Settings(event={"pcc": PCC}))
    found = {meanings.fingerprint(f"grid/{number}/pcc") for number in range(3_000)}
    assert len(found) == 1
    assert len(meanings._known) <= 1_024


def _useless(one: dict[str, Event], other: dict[str, Event]) -> tuple[int, list[bytes]]:
    """How many messages cross in vain from one broker to another that wants some of them, and what its client got."""
    world = GroupWorld(Random(1), overlay=Overlay())
    world.events = {1: one, 2: other}
    for number in (1, 2):
        world.start(number)
    world.join(1, 2, 0.001, 1e6)
    world.clock.run_for(1)
    person = world.person("s", 2, "$where/v%20%3E%2050/grid/+/pcc", is_kept=False)
    publisher = world.person("p", 1, is_kept=False)
    world.clock.run_for(1)
    for value in (10, 60, 20):
        world.put(publisher, "grid/1/pcc", b'{"v": %d, "w": %d}' % (value, 100 - value), 1)
    world.clock.run_for(1)
    site = world.site(2).world
    assert site is not None
    return site.broker.from_brokers.useless, person.got


def test_brokers_with_other_types_on_other_topics_send_nothing_in_vain() -> None:
    wanted = [b'{"v": 60, "w": 40}']
    assert _useless({"pcc": PCC}, {"pcc": PCC, "site": SITE}) == (0, wanted)
    assert _useless({"site": SITE}, {}) == (0, wanted)
    useless, got = _useless({"pcc": PCC}, {"pcc": OTHER_PCC})
    assert useless == 1
    assert got == [b'{"v": 10, "w": 90}', b'{"v": 20, "w": 80}']
