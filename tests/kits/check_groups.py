"""What shared subscriptions over joined brokers owe: histories by seed, of whole brokers with clients in virtual time.

A history has three to five brokers, groups with members at several of them (some with conditions, some names with
several filters), clients that subscribe, leave and come back, publications of all QoS, and faults.  Then everything
heals, everybody returns, and it is judged: each accepted QoS 1 and 2 message came to exactly one member of every group
that wants it, nobody outside groups got anything twice, each member that stays got what it got in order, by (publisher,
topic, QoS), and in the end nothing is owed or left on any route.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from random import Random
from typing import Final

from tests.kits import history
from tests.kits.group_world import GroupWorld, Person
from tests.kits.history import histories
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Attribute, Event
from tieline.wire.topics import matches

#: When clients have subscribed and everybody knows, when faults are over, and how long it may take to run empty.
BEGIN_S: Final = 2.0
FAULTS_S: Final = 8.0
EMPTY_S: Final = 60.0
_TOPICS: Final = ("grid/a", "grid/b", "site/1")
#: Share name, filter, and the conditions of those who stay to the end; None is no condition.
_GROUPS: Final = (
    ("g", "grid/#", (None,)),
    ("g", "grid/a", (None,)),
    ("h", "#", (None,)),
    ("c", "grid/+", ("v > 50", "v <= 50")),
    ("d", "grid/a", ("v > 70",)),
)


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing, and members stay
    CHURN = "churn"  # members come and go
    LINKS = "links"  # links are cut, and members come and go
    CRASHES = "crashes"  # brokers crash, most of them around a commit, and links are cut
    TYPES = "types"  # as churn, and brokers have declared different event types
    DEAD = "dead"  # brokers are cut off for longer than it takes to be given up


@dataclass
class Verdict(history.Verdict):
    """What was wrong with a history, and how it went."""

    #: How many copies for groups were judged, messages handed on and picked anew.
    judged: int = 0
    handed_on: int = 0
    reassigned: int = 0


def check_groups(kind: Kind, seeds: Iterable[int]) -> Verdict:
    """Run histories and fail at the first that is wrong, with its story; what they came to."""
    total = Verdict(0, kind)
    for verdict in histories(seeds, lambda seed: run_history(kind, seed)):
        total.judged += verdict.judged
        total.handed_on += verdict.handed_on
        total.reassigned += verdict.reassigned
    return total


@dataclass
class _Member:
    person: Person
    share: str
    filter: str
    condition: str | None
    stays: bool


class _History:
    """One history as it is made and judged."""

    def __init__(self, kind: Kind, seed: int, strategy: str | None) -> None:
        self.kind = kind
        random = self.random = Random(f"{kind.value} {seed}")
        overlay = Overlay(groups=random.choice(("local", "balanced")), dead_s=1.0 if kind is Kind.DEAD else 30.0)
        drawn = random.choice(("path", "path", "tree", "flood"))
        self.world = GroupWorld(random, overlay=overlay, strategy=strategy or drawn)
        self.verdict = Verdict(seed, kind)
        self.members: list[_Member] = []
        self.plain: list[Person] = []
        self.publishers: list[Person] = []
        #: By text: publisher, topic, QoS and number.
        self.messages: dict[bytes, tuple[str, str, int, int]] = {}
        self.values: dict[bytes, int] = {}
        self.handed: dict[int, int] = {}

    def build(self) -> None:
        random, world = self.random, self.world
        numbers = list(range(1, random.randint(3, 5) + 1))
        for number in numbers:
            if self.kind is Kind.TYPES and random.random() < 0.5:
                attributes = (Attribute("v", bounds=(0, random.choice((100, 200)))),)
                world.events[number] = {"grid": Event(topic="grid/#", attributes=attributes)}
            world.start(number)
        pairs = {(random.choice(numbers[:index]), number) for index, number in enumerate(numbers) if index}
        others = [pair for pair in combinations(numbers, 2) if pair not in pairs]
        pairs |= set(random.sample(others, min(len(others), random.randint(1, 2))))
        for one, other in sorted(pairs):
            world.join(one, other, random.uniform(0.002, 0.05), random.choice((32_000.0, 125_000.0)))
        world.tell(f"links {sorted(pairs)}, {world.overlay.groups}, {world.strategy}")

    def people(self) -> None:
        random, world = self.random, self.world
        numbers = sorted(world.brokers)
        for share, filter_, conditions in random.sample(_GROUPS, 3):
            for condition in conditions:
                self.member(share, filter_, condition, random.choice(numbers), stays=True)
            for _ in range(random.randint(1, 3)):
                condition = random.choice(conditions)
                stays = self.kind is Kind.CALM
                at = 0.1 if stays else random.uniform(0.1, FAULTS_S - 2)
                world.clock.after(at, self._joiner(share, filter_, condition, random.choice(numbers), stays=stays))
        for number in range(random.randint(1, 2)):
            topic = random.choice(("grid/#", "grid/a", "#"))
            self.plain.append(world.person(f"plain {number}", random.choice(numbers), topic, is_kept=True))
        for number in range(3):
            self.publishers.append(world.person(f"publisher {number}", random.choice(numbers), is_kept=False))
        times = sorted(random.uniform(BEGIN_S, FAULTS_S) for _ in range(70))
        for counter, at in enumerate(times, 1):
            self.world.later(at, self.publish, random.choice(self.publishers), random.choice(_TOPICS), counter)

    def _joiner(
        self, share: str, filter_: str, condition: str | None, home: int, *, stays: bool
    ) -> Callable[[float], None]:
        def join(_now: float) -> None:
            member = self.member(share, filter_, condition, home, stays=stays)
            if stays:
                return
            at = self.random.uniform(0.3, 3)
            if member.person.is_kept:
                # it is away for a while, or unsubscribes
                if self.random.random() < 0.5:
                    self.world.later(at, self.world.go, member.person)
                else:
                    self.world.later(at, self.world.unsubscribe, member.person)
            else:
                self.world.later(at, self.world.go, member.person)

        return join

    def member(self, share: str, filter_: str, condition: str | None, home: int, *, stays: bool) -> _Member:
        asked = (
            ""
            if condition is None
            else f"$where/{condition.replace(' ', '%20').replace('<', '%3C').replace('>', '%3E')}/"
        )
        is_kept = stays or (self.kind not in {Kind.CRASHES, Kind.DEAD} and self.random.random() < 0.5)
        is_kept = is_kept or self.kind in {Kind.CRASHES, Kind.DEAD}
        name = f"member {len(self.members)}"
        self.world.tell(f"{name} of {share} {filter_} {condition or ''} at {home}, kept {is_kept}, stays {stays}")
        person = self.world.person(name, home, f"$share/{share}/{asked}{filter_}", is_kept=is_kept)
        member = _Member(person, share, filter_, condition, stays)
        self.members.append(member)
        return member

    def publish(self, publisher: Person, topic: str, counter: int) -> None:
        qos, value = self.random.choice((0, 1, 1, 2, 2)), self.random.randrange(100)
        text = b'{"v": %d, "n": %d}' % (value, counter)
        self.messages[text] = publisher.name, topic, qos, counter
        self.values[text] = value
        self.world.put(publisher, topic, text, qos, retain=self.random.random() < 0.2)

    def faults(self) -> None:
        random, world, kind = self.random, self.world, self.kind
        if kind in {Kind.LINKS, Kind.CRASHES}:
            for _ in range(random.randint(3, 7)):
                for_s = random.choice((random.uniform(0.01, 0.1), random.uniform(0.1, 2)))
                self.world.later(
                    random.uniform(BEGIN_S, FAULTS_S - for_s), world.cut, random.choice(world.cables), for_s
                )
        if kind is Kind.CRASHES:
            for _ in range(random.randint(2, 4)):
                self.world.later(
                    random.uniform(BEGIN_S, FAULTS_S - 1), self.crash, random.choice(sorted(world.brokers))
                )
        if kind is Kind.DEAD:
            number = random.choice(sorted(world.brokers))
            at = random.uniform(BEGIN_S, FAULTS_S / 2)
            for cable in world.cables:
                if number in cable.ends:
                    self.world.later(at, world.cut, cable, random.uniform(2.5, 4))

    def crash(self, number: int) -> None:
        how = self.random.choice(("", "before", "after"))
        if how:
            self.world.site(number).crashes_at = how
        else:
            self.world.crash(number, self.random.uniform(0.1, 1.5))

    # -- judging

    def run_empty(self) -> None:
        world = self.world
        for broker in world.brokers.values():
            broker.crashes_at = ""
        world.clock.run_for(3)
        for member in self.members:
            if member.person.is_kept and not member.person.has_left:
                world.come(member.person)
        end = world.clock.now + EMPTY_S
        while world.clock.now < end:
            world.clock.run_for(0.25)
            if all(broker.node is not None and broker.node.unfinished == 0 for broker in world.brokers.values()):
                world.clock.run_for(0.25)
                world.tell("everything has run empty")
                return
        for number, broker in world.brokers.items():
            if broker.node is None or broker.node.unfinished:
                self.verdict.wrong.append(f"{number} has not run empty")

    def judge(self) -> None:
        wrong, verdict = self.verdict.wrong, self.verdict
        for broker in self.world.brokers.values():
            if broker.node is not None:
                broker.node.check()
        for text in self.world.accepted:
            publisher, topic, qos, number = self.messages[text]
            for share, filter_ in sorted({(member.share, member.filter) for member in self.members}):
                if not matches(filter_, topic):
                    continue
                mine = [member for member in self.members if (member.share, member.filter) == (share, filter_)]
                copies = [member.person.name for member in mine for got in member.person.got if got == text]
                safe = sum(self.world.safe(member.person, text) for member in mine) if qos == 1 else len(copies)
                name = f"{topic} number {number} of {publisher} with QoS {qos} {text!r} for {share} {filter_}"
                is_sure = any(member.stays and self.wants(member, text) for member in mine)
                most = 1 if qos == 2 or self.kind is not Kind.DEAD else len(self.world.brokers)
                verdict.judged += is_sure
                if safe > most or (is_sure and not copies):
                    wrong.append(f"{name} came to {copies or 'nobody'}")
                for member in mine:
                    if text in member.person.got and not self.wants(member, text):
                        wrong.append(f"{name} came to {member.person.name}, who asked for {member.condition}")
            for person in self.plain:
                times = person.got.count(text)
                safe = self.world.safe(person, text) if qos == 1 else times
                is_due = matches(person.filter, topic)
                if safe > is_due or bool(times) != is_due:
                    wrong.append(f"{topic} number {number} with QoS {qos} came {times} times to {person.name}")
        if self.kind is Kind.CALM:
            self.judge_order()
        verdict.wrong += self.world.loops

    def judge_order(self) -> None:
        for member in self.members:
            last: dict[tuple[str, str, int], int] = {}
            for text in member.person.got:
                publisher, topic, qos, number = self.messages[text]
                flow = publisher, topic, qos
                if number < last.get(flow, 0):
                    self.verdict.wrong.append(f"{member.person.name}: {flow} number {number} behind {last[flow]}")
                last[flow] = number

    def wants(self, member: _Member, text: bytes) -> bool:
        if member.condition is None:
            return True
        _, comparison, bound = member.condition.split()
        return self.values[text] > int(bound) if comparison == ">" else self.values[text] <= int(bound)

    def end(self) -> None:
        """Everybody leaves, and nobody knows of any group any more."""
        for member in self.members:
            self.world.unsubscribe(member.person)
        for person in self.plain:
            self.world.unsubscribe(person)
        for site in map(self.world.site, self.world.brokers):
            assert site.world is not None
            self.verdict.handed_on += site.world.broker.from_brokers.named.handed_on
            assert site.node is not None
            self.verdict.reassigned += site.node.counts.reassigned
        self.world.clock.run_for(8)
        for number in self.world.brokers:
            site = self.world.site(number)
            assert site.world is not None
            for share, filter_, _ in _GROUPS:
                group = site.world.broker.routes.group(share, filter_)
                if group is not None:
                    self.verdict.wrong.append(f"{number} still knows {group!r}, brokers {group.brokers}")


def run_history(kind: Kind, seed: int, strategy: str | None = None) -> Verdict:
    """One history from its beginning to its verdict; without a strategy, its seed chooses one."""
    history = _History(kind, seed, strategy)
    history.build()
    history.people()
    history.faults()
    history.world.clock.run_for(FAULTS_S)
    history.run_empty()
    history.judge()
    history.end()
    history.verdict.story = history.world.story
    return history.verdict
