"""What whole brokers on a ring owe their clients: histories by seed, in virtual time.

A history has four to nine brokers that join one by one, clients with filters and conditions, publications of all QoS,
and faults.  Then everything heals and runs empty, and it is judged: what was accepted for somebody whose subscription
was acknowledged before, at a broker that was on the ring from then on, came to it; with QoS 1 and 2 nothing came twice,
and everything in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final
from urllib.parse import quote

from tests.kits.group_world import Person
from tests.kits.member_world import SETTINGS, MemberWorld
from tieline.conf.schema import Attribute, Event
from tieline.wire.topics import matches

FAULTS_S: Final = 8.0
EMPTY_S: Final = 60.0
_TOPICS: Final = ("grid/a", "grid/b", "site/1")
_FILTERS: Final = ("grid/#", "grid/a", "#", "+/1", "grid/+")


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing; some brokers and clients come late
    CRASHES = "crashes"  # brokers crash, most of them around a commit, and come back
    LINKS = "links"  # connections break, and pairs of brokers cannot reach each other for a while


@dataclass
class Verdict:
    """What was wrong with a history, and how it went."""

    seed: int
    kind: Kind
    wrong: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    #: Copies that were judged; of these at other brokers, and those after a late SUBACK.
    judged: int = 0
    crossed: int = 0
    late: int = 0
    #: Messages that came to a broker where nobody wants them.
    useless: int = 0

    def __str__(self) -> str:
        return "\n".join([f"{self.kind.value} history {self.seed}:", *self.story, *self.wrong[:20]])


def check_member(kind: Kind, seeds: Iterable[int], dispatch: str = "arcs") -> Verdict:
    """Run histories and fail at the first that is wrong, with its story; what they came to."""
    total = Verdict(0, kind)
    for seed in seeds:
        verdict = run_history(kind, seed, dispatch)
        assert not verdict.wrong, str(verdict)
        total.judged += verdict.judged
        total.crossed += verdict.crossed
        total.late += verdict.late
        total.useless += verdict.useless
    return total


@dataclass(eq=False)
class _Subscriber:
    person: Person
    filter: str
    above: int | None
    is_early: bool


class _History:
    """One history as it is made and judged."""

    def __init__(self, kind: Kind, seed: int, dispatch: str) -> None:
        self.kind = kind
        random = self.random = Random(f"member {kind.value} {seed}")
        self.world = MemberWorld(random, dispatch=dispatch)
        self.verdict = Verdict(seed, kind)
        self.subscribers: list[_Subscriber] = []
        self.publishers: list[Person] = []
        #: By text: publisher, topic, QoS, number, value and when it was handed in.
        self.messages: dict[bytes, tuple[str, str, int, int, int, float]] = {}

    def build(self) -> None:
        random, world = self.random, self.world
        numbers = list(range(1, random.randint(4, 9) + 1))
        attributes = (Attribute("v", bounds=(0, 100)),)
        for number in numbers if random.random() < 0.7 else ():
            world.events[number] = {"grid": Event(topic="grid/#", attributes=attributes)}
        world.found(1)
        for number in numbers[1:]:
            world.clock.run_for(random.choice((0.0, 0.05, 0.3)))
            world.found(number, random.randrange(1, number))
        for _ in range(random.randint(4, 7)):
            self.subscriber(is_early=True)
        world.clock.run_for(8)

    def people(self) -> None:
        random, world = self.random, self.world
        for number in range(3):
            self.publishers.append(world.person(f"p{number}", self._home(), is_kept=False))
        for _ in range(4):
            world.later(random.uniform(0, FAULTS_S - 1), self.subscriber)
        for counter, at in enumerate(sorted(random.uniform(0, FAULTS_S) for _ in range(90)), 1):
            world.later(at, self.publish, random.choice(self.publishers), random.choice(_TOPICS), counter)

    def _home(self) -> int:
        return self.random.choice(sorted(self.world.brokers))

    def subscriber(self, *, is_early: bool = False) -> None:
        random = self.random
        filter_, above = random.choice(_FILTERS), random.choice((None, None, 30, 60))
        home, name = self._home(), f"s{len(self.subscribers)}"
        where = "" if above is None else f"$where/{quote(f'v > {above}')}/"
        self.world.tell(f"{name} at {home} wants {filter_} above {above}")
        person = self.world.person(name, home, f"{where}{filter_}", is_kept=True)
        self.subscribers.append(_Subscriber(person, filter_, above, is_early))

    def publish(self, publisher: Person, topic: str, counter: int) -> None:
        qos, value = self.random.choice((0, 1, 1, 2, 2)), self.random.randrange(100)
        text = b'{"v": %d, "n": %d}' % (value, counter)
        self.messages[text] = publisher.name, topic, qos, counter, value, self.world.clock.now
        self.world.put(publisher, topic, text, qos)

    def faults(self) -> None:
        random, world, kind = self.random, self.world, self.kind
        if kind is Kind.CRASHES:
            for _ in range(random.randint(2, 4)):
                world.later(random.uniform(0, FAULTS_S - 1), self.crash, self._home())
        if kind is Kind.LINKS:
            for _ in range(random.randint(3, 8)):
                for_s = random.choice((random.uniform(0.01, 0.1), random.uniform(0.1, 1)))
                world.later(random.uniform(0, FAULTS_S - for_s), self.cut, for_s)
        if kind is Kind.CALM:
            number = len(world.brokers) + 1
            world.later(random.uniform(0, 2), self.newcomer, number)

    def newcomer(self, number: int) -> None:
        self.world.events[number] = self.world.events.get(1, {})
        self.world.found(number, self._home())

    def cut(self, for_s: float) -> None:
        self.world.cut(self.random.choice(self.world.cables), for_s)

    def crash(self, number: int) -> None:
        how = self.random.choice(("", "before", "after"))
        if how:
            self.world.site(number).crashes_at = how
        else:
            self.world.crash(number, self.random.uniform(0.1, 4))

    # -- judging

    def run_empty(self) -> None:
        world = self.world
        for broker in world.brokers.values():
            broker.crashes_at = ""
        world.clock.run_for(3)
        end = world.clock.now + EMPTY_S
        while world.clock.now < end:
            world.clock.run_for(0.5)
            members = [world.ring_site(number).member for number in world.brokers]
            if all(each is not None and each.is_joined and not each.unfinished for each in members):
                world.clock.run_for(0.5)
                return
        for number in world.brokers:
            member = world.ring_site(number).member
            if member is None or not member.is_joined or member.unfinished:
                self.verdict.wrong.append(f"{number} has not run empty: {member} {member and member.unfinished}")

    def judge(self) -> None:
        for number in self.world.brokers:
            member = self.world.ring_site(number).member
            assert member is not None
            assert member.node is not None
            member.node.table.check()
        for text in self.world.accepted:
            for each in self.subscribers:
                self._judge_copy(text, each)
        self._judge_order()
        for number in self.world.brokers:
            world = self.world.site(number).world
            assert world is not None
            self.verdict.useless += world.broker.from_brokers.useless

    def _judge_copy(self, text: bytes, each: _Subscriber) -> None:
        publisher, topic, qos, number, value, at = self.messages[text]
        person, verdict = each.person, self.verdict
        times = person.got.count(text)
        safe = self.world.safe(person, text) if qos == 1 else times
        is_wanted = matches(each.filter, topic) and (each.above is None or value > each.above)
        home = next(other.home for other in self.publishers if other.name == publisher)
        is_due = is_wanted and (self._is_granted(each, at) or (home == person.home and self._is_granted(each, at, 0)))
        if is_due:
            verdict.judged += 1
            verdict.late += not each.is_early
            verdict.crossed += home != person.home
        if safe > is_wanted or (is_due and not times):
            verdict.wrong.append(
                f"{topic} number {number} of {publisher}, QoS {qos}, at {at - 1000:.3f} came {times} times to "
                f"{person.name}, granted at {(person.granted_at or 0) - 1000:.3f}"
            )

    def _is_granted(self, each: _Subscriber, at: float, leases: int = 2) -> bool:
        """Whether a subscription was acknowledged before, at a broker that has been there since."""
        granted = each.person.granted_at
        crashed = self.world.site(each.person.home).crashed
        away = max(crashed, default=0.0)
        since = away + leases * 2 * SETTINGS.lease_s + 4 if crashed else 0.0
        return granted is not None and 0 < granted < at and since < at

    def _judge_order(self) -> None:
        for each in self.subscribers:
            last: dict[tuple[str, str, int], int] = {}
            seen: set[bytes] = set()
            for text in each.person.got:
                publisher, topic, qos, number, _, _ = self.messages[text]
                if text in seen or not qos:
                    continue
                seen.add(text)
                flow = publisher, topic, qos
                if number < last.get(flow, 0):
                    self.verdict.wrong.append(f"{each.person.name}: {flow} number {number} behind {last[flow]}")
                last[flow] = max(number, last.get(flow, 0))


def run_history(kind: Kind, seed: int, dispatch: str = "arcs") -> Verdict:
    """One history from its beginning to its verdict."""
    history = _History(kind, seed, dispatch)
    history.build()
    history.people()
    history.faults()
    history.world.clock.run_for(FAULTS_S)
    history.run_empty()
    history.judge()
    history.verdict.story = history.world.story
    return history.verdict
