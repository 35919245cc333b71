"""Who gets what, over several brokers, is what one broker would do: random filters, groups and conditions, by seed.

One message at a time is published, and everything comes to rest before the next one, so that an oracle can say who has
to get it from what each subscription was delivered before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

import pytest

from tests.kits.group_world import GroupWorld, Person
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Attribute, Event
from tieline.wire.topics import matches

_TOPICS: Final = ("grid/a", "grid/b", "site/1")
_FILTERS: Final = (*_TOPICS, "grid/+", "grid/#", "#")
#: Conditions, and what they say of a value and the one that was delivered before.
_PLAIN: Final = ("", "v > 50", "v <= 30")
_STATEFUL: Final = (*_PLAIN, "changed(v)", "delta(v) > 20", "v > 50 and changed(v)")


@dataclass(eq=False)
class _Wish:
    """One subscription, of a client that has no other."""

    person: Person
    share: str
    filter: str
    condition: str
    #: By topic, the value that was delivered last.
    before: dict[str, int] = field(default_factory=dict)

    def holds(self, topic: str, value: int) -> bool:
        before = self.before.get(topic)
        is_changed, is_far = before != value, before is None or abs(value - before) > 20
        found = {
            "": True,
            "v > 50": value > 50,
            "v <= 30": value <= 30,
            "changed(v)": is_changed,
            "delta(v) > 20": is_far,
            "v > 50 and changed(v)": value > 50 and is_changed,
        }
        return matches(self.filter, topic) and found[self.condition]


class _Play:
    """Three brokers in a line, or a triangle, and people who come, ask and go."""

    def __init__(self, seed: int, *, conditions: tuple[str, ...], has_types: bool) -> None:
        random = self.random = Random(seed)
        self.world = GroupWorld(random, overlay=Overlay(groups=random.choice(("local", "balanced"))))
        #: Where a broker finds ``v`` in a payload: two brokers that have declared it differently mean different values.
        self.places = {}
        for number in (1, 2, 3):
            self.places[number] = random.choice(("v", "w")) if has_types else "v"
            attributes = (Attribute("v", bounds=(0, 100), path=self.places[number]),)
            self.world.events[number] = {"all": Event(topic="#", attributes=attributes)}
            self.world.start(number)
        for one, other in ((1, 2), (2, 3), (1, 3))[: random.randint(2, 3)]:
            self.world.join(one, other, 0.001, 1e6)
        self.world.clock.run_for(1)
        self.conditions = conditions
        self.wishes: list[_Wish] = []
        self.names = 0
        self.publishers = [self.world.person(f"p{home}", home, is_kept=False) for home in (1, 2, 3)]

    def ask(self, count: int) -> None:
        for _ in range(count):
            share, filter_ = self.random.choice(("", "", "g", "h")), self.random.choice(_FILTERS)
            condition, home = self.random.choice(self.conditions), self.random.choice((1, 2, 3))
            asked = (
                f"$where/{condition.replace(' ', '%20').replace('<', '%3C').replace('>', '%3E')}/" if condition else ""
            )
            self.names += 1
            written = f"$share/{share}/{asked}{filter_}" if share else f"{asked}{filter_}"
            person = self.world.person(f"c{self.names}", home, written, is_kept=False)
            self.wishes.append(_Wish(person, share, filter_, condition))
        self.world.clock.run_for(1)
        assert all(wish.person.granted_at is not None for wish in self.wishes)

    def forget(self, count: int) -> None:
        for wish in self.random.sample(self.wishes, count):
            self.world.unsubscribe(wish.person)
            self.wishes.remove(wish)
        self.world.clock.run_for(4)

    def publish(self, number: int) -> None:
        """One message, and who has to get it."""
        topic = self.random.choice(_TOPICS)
        values = {"v": self.random.choice((10, 20, 40, 60, 80)), "w": self.random.choice((10, 20, 40, 60, 80))}
        text = b'{"v": %d, "w": %d, "n": %d}' % (values["v"], values["w"], number)
        self.world.put(self.random.choice(self.publishers), topic, text, self.random.choice((0, 1, 2)))
        self.world.clock.run_for(0.4)
        groups: dict[tuple[str, str], list[_Wish]] = {}
        got = {wish: wish.person.got.count(text) for wish in self.wishes}
        for wish in self.wishes:
            value = values[self.places[wish.person.home]]
            is_wanted = wish.holds(topic, value)
            if not wish.share:
                assert got[wish] == is_wanted, (text, topic, wish)
            elif is_wanted:
                groups.setdefault((wish.share, wish.filter), []).append(wish)
            else:
                assert not got[wish], (text, topic, wish)
            if got[wish]:
                wish.before[topic] = value
        for members in groups.values():
            assert sum(got[wish] for wish in members) == 1, (text, topic, members)

    @property
    def useless(self) -> int:
        sites = [self.world.site(number) for number in (1, 2, 3)]
        return sum(site.world.broker.from_brokers.useless for site in sites if site.world is not None)

    def run(self) -> None:
        number = 0
        for _ in range(3):
            self.ask(5)
            for _ in range(12):
                number += 1
                self.publish(number)
            self.forget(3)
        assert number == 36


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_sent_that_nobody_wants(seed: int) -> None:
    play = _Play(seed, conditions=_PLAIN, has_types=False)
    play.run()
    assert play.useless == 0


@pytest.mark.parametrize("seed", range(6))
def test_conditions_on_what_was_delivered_before_and_by_other_event_types_are_exact(seed: int) -> None:
    _Play(seed, conditions=_STATEFUL, has_types=True).run()


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("begin", range(0, 200, 50))
def test_many_plays(begin: int) -> None:
    for seed in range(begin, begin + 50):
        play = _Play(seed, conditions=_PLAIN, has_types=False)
        play.run()
        assert play.useless == 0
        _Play(seed, conditions=_STATEFUL, has_types=seed % 2 > 0).run()
