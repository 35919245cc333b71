"""What regions behind gateways owe: histories by seed, of whole brokers with clients in virtual time.

A history has two or three regions of one to three brokers and a gateway, or two gateways; clients with and without
conditions, shared subscriptions with members in several regions, publications of all QoS, and faults.  Then everything
heals, everybody returns, and it is judged against all subscriptions by brute force: each accepted QoS 1 and 2 message
came exactly once to each client that wanted it, in whichever region, and to exactly one member of a group in each
region that has some; in order by (publisher, topic, QoS); a subscription that was acknowledged while everybody was in
reach has missed nothing since; and in the end nothing is owed on either side of a gateway, and nobody remembers what
nobody wants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final
from urllib.parse import quote

from tests.kits import history
from tests.kits.group_world import Person
from tests.kits.history import histories
from tests.kits.region_world import OUTER, RegionWorld
from tieline.wire.topics import matches

#: When clients have subscribed and everybody knows, when faults are over, and how long it may take to run empty.
BEGIN_S: Final = 2.5
FAULTS_S: Final = 9.0
EMPTY_S: Final = 60.0
_TOPICS: Final = ("grid/a", "grid/b", "site/1")
_REGIONS: Final = ("west", "east", "north")
_DECLARATIONS: Final[tuple[tuple[str, ...], ...]] = (("grid/a",), ("grid/#",), ("site/+",), ("grid/b", "site/1"), ())


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing; clients subscribe at any time
    LINKS = "links"  # links are cut, inside regions and between them
    CRASHES = "crashes"  # gateways crash, most of them around a commit, and so do others; links are cut
    ISLANDS = "islands"  # all links of a gateway are cut, so that its region is alone for a while
    SEVERAL = "several"  # as crashes, where every region has two gateways
    DECLARED = "declared"  # as crashes, where brokers declare what is published at them, and something else by and by
    FULL = "full"  # so little may be owed to a region that is cut off that gateways have no room


@dataclass
class Verdict(history.Verdict):
    """What was wrong with a history, and how it went."""

    #: Copies that were judged; of these in other regions than that of the publisher, and those after a late SUBACK.
    judged: int = 0
    crossed: int = 0
    late: int = 0
    #: Times at which a stream stood still at a gateway for want of room on its other side.
    stalled: int = 0
    #: Subscriptions of which some brokers had not told others when messages came, and brokers that were sent more than
    #: they want, since they did not know yet what else is published.
    spared: int = 0
    supplemented: int = 0


def check_regions(kind: Kind, seeds: Iterable[int]) -> Verdict:
    """Run histories and fail at the first that is wrong, with its story; what they came to."""
    total = Verdict(0, kind)
    for verdict in histories(seeds, lambda seed: run_history(kind, seed)):
        total.judged += verdict.judged
        total.crossed += verdict.crossed
        total.late += verdict.late
        total.stalled += verdict.stalled
        total.spared += verdict.spared
        total.supplemented += verdict.supplemented
    return total


@dataclass(eq=False)
class _Subscriber:
    person: Person
    filter: str
    #: What the value has to be larger than; None without a condition.
    above: int | None
    share: str
    #: It was there before anything went wrong.
    is_early: bool


class _History:
    """One history as it is made and judged."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self.kind = kind
        random = self.random = Random(f"regions {kind.value} {seed}")
        self.world = RegionWorld(random, strategy=random.choice(("path", "path", "tree")))
        self.verdict = Verdict(seed, kind)
        self.subscribers: list[_Subscriber] = []
        self.publishers: list[Person] = []
        #: By text: publisher, topic, QoS, number, value and when it was handed in.
        self.messages: dict[bytes, tuple[str, str, int, int, int, float]] = {}
        self.retained: set[bytes] = set()
        #: By broker that serves clients.
        self.region_of: dict[int, str] = {}

    def build(self) -> None:
        random, world = self.random, self.world
        if self.kind is Kind.FULL:
            world.owed_bytes = 2_000
        several = 2 if self.kind is Kind.SEVERAL else 1
        gateways: list[int] = []
        for place, region in enumerate(_REGIONS[: random.randint(2, 3)]):
            first = 20 * place + 1
            brokers = list(range(first, first + random.randint(1, 3)))
            own = list(range(first + 10, first + 10 + several))
            self.region_of |= dict.fromkeys(brokers, region)
            for number in brokers:
                if self.kind is Kind.DECLARED:
                    world.published[number] = random.choice(_DECLARATIONS)
                world.start(number)
            for number in own:
                world.gateway(number, region)
            members = brokers + own
            random.shuffle(members)
            for index, number in enumerate(members[1:], 1):
                self._cable(random.choice(members[:index]), number)
            if len(members) > 2:
                self._cable(*random.sample(members, 2))
            gateways += own
        outside = gateways[:]
        random.shuffle(outside)
        for index, number in enumerate(outside[1:], 1):
            self._cable(random.choice(outside[:index]) + OUTER, number + OUTER)
        if len(outside) > 2:
            self._cable(*(number + OUTER for number in random.sample(outside, 2)))
        world.tell(f"brokers {self.region_of}, gateways {world.regions}, {world.strategy}")

    def _cable(self, one: int, other: int) -> None:
        if any({one, other} == {*cable.ends} for cable in self.world.cables):
            return
        self.world.tell(f"a cable from {one} to {other}")
        self.world.join(one, other, self.random.uniform(0.002, 0.05), self.random.choice((32_000.0, 125_000.0)))

    def people(self) -> None:
        random, world = self.random, self.world
        for _ in range(random.randint(4, 7)):
            self.subscriber(is_early=True)
        if self.kind is Kind.CALM:
            for _ in range(5):
                world.after(random.uniform(BEGIN_S, FAULTS_S - 1), self.subscriber)
        for number in range(3):
            self.publishers.append(world.person(f"p{number}", self._home(), is_kept=False))
        times = sorted(random.uniform(BEGIN_S, FAULTS_S) for _ in range(90))
        for counter, at in enumerate(times, 1):
            world.after(at, self.publish, random.choice(self.publishers), random.choice(_TOPICS), counter)
        if self.kind is Kind.DECLARED:
            for _ in range(5):
                number = random.choice([each.home for each in self.publishers])
                at = random.uniform(BEGIN_S, FAULTS_S - 1)
                world.after(at, world.declare, number, random.choice(_DECLARATIONS))

    def _home(self) -> int:
        return self.random.choice(sorted(self.region_of))

    def subscriber(self, *, is_early: bool = False) -> None:
        random, world = self.random, self.world
        filter_ = random.choice(("grid/#", "grid/a", "#", "+/1", "grid/+"))
        above = random.choice((None, None, 30, 60))
        share = random.choice(("", "", "", "g")) if is_early else ""
        home, name = self._home(), f"s{len(self.subscribers)}"
        front = f"$share/{share}/" if share else ""
        where = "" if above is None else f"$where/{quote(f'v > {above}')}/"
        world.tell(f"{name} at {home} wants {front}{filter_} above {above}")
        person = world.person(name, home, f"{front}{where}{filter_}", is_kept=True)
        self.subscribers.append(_Subscriber(person, filter_, above, share, is_early))

    def publish(self, publisher: Person, topic: str, counter: int) -> None:
        filters = self.world.published.get(publisher.home)
        if filters is not None:
            allowed = [each for each in _TOPICS if any(matches(filter_, each) for filter_ in filters)]
            if not allowed:
                return
            topic = topic if topic in allowed else allowed[counter % len(allowed)]
        self._note_declared()
        qos, value = self.random.choice((0, 1, 1, 2, 2)), self.random.randrange(100)
        text = b'{"v": %d, "n": %d}' % (value, counter)
        self.messages[text] = publisher.name, topic, qos, counter, value, self.world.clock.now
        is_retained = self.random.random() < 0.2
        if is_retained:
            self.retained.add(text)
        self.world.put(publisher, topic, text, qos, retain=is_retained)

    def _note_declared(self) -> None:
        for number in self.region_of:
            joined = self.world.site(number).joined
            if joined is not None:
                self.verdict.spared += len(joined.grants.sparing.spared)
                self.verdict.supplemented += joined.grants.supplemented

    def faults(self) -> None:
        random, world, kind = self.random, self.world, self.kind
        is_crashing = kind in {Kind.CRASHES, Kind.SEVERAL, Kind.DECLARED}
        if kind is Kind.LINKS or is_crashing:
            for _ in range(random.randint(3, 8)):
                for_s = random.choice((random.uniform(0.01, 0.1), random.uniform(0.1, 2)))
                world.after(random.uniform(BEGIN_S, FAULTS_S - for_s), world.cut, random.choice(world.cables), for_s)
        if is_crashing:
            for _ in range(random.randint(3, 6)):
                numbers = sorted(world.regions) if random.random() < 0.7 else sorted(self.region_of)
                world.after(random.uniform(BEGIN_S, FAULTS_S - 1), self.crash, random.choice(numbers))
        if kind in {Kind.ISLANDS, Kind.FULL}:
            number = random.choice(sorted(world.regions))
            for_s = random.uniform(1, 4)
            world.after(random.uniform(BEGIN_S, FAULTS_S - for_s), world.cut_off, number, for_s)

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
        for broker in self.world.brokers.values():
            assert broker.node is not None
            broker.node.check()
        for text in self.world.accepted:
            for each in self.subscribers:
                if not each.share:
                    self._judge_copy(text, each)
            self._judge_groups(text)
        self._judge_order()
        sides = [side.node for each in self.world.gateways.values() for side in (each.inside, each.outside)]
        self.verdict.stalled = sum(node.counts.stalled for node in sides)
        self.verdict.wrong += self.world.loops

    def wants(self, each: _Subscriber, text: bytes) -> bool:
        _, topic, _, _, value, _ = self.messages[text]
        return matches(each.filter, topic) and (each.above is None or value > each.above)

    def _judge_copy(self, text: bytes, each: _Subscriber) -> None:
        publisher, topic, qos, number, _, at = self.messages[text]
        person, verdict = each.person, self.verdict
        times = person.got.count(text)
        safe = self.world.safe(person, text) if qos == 1 else times
        granted = person.granted_at
        is_wanted = self.wants(each, text)
        # who is late gets what is handed in behind its SUBACK, and perhaps what was retained or on its way before
        is_due = is_wanted and granted is not None and (each.is_early or granted < at)
        if is_due:
            verdict.judged += 1
            verdict.late += not each.is_early
            home = next(each.home for each in self.publishers if each.name == publisher)
            verdict.crossed += self.region_of[home] != self.region_of[person.home]
        # who subscribes while something retained is on its way may get it live and retained
        most = is_wanted + (is_wanted and not is_due and text in self.retained)
        if safe > most or (is_due and not times):
            verdict.wrong.append(
                f"{topic} number {number} of {publisher}, QoS {qos}, came {times} times to {person.name}"
            )

    def _judge_groups(self, text: bytes) -> None:
        """Each region has a member of its own for a group with one filter."""
        publisher, topic, qos, number, _, _ = self.messages[text]
        groups: dict[tuple[str, str], list[_Subscriber]] = {}
        for each in self.subscribers:
            if each.share:
                groups.setdefault((self.region_of[each.person.home], each.filter), []).append(each)
        for (region, filter_), members in groups.items():
            copies = sum(member.person.got.count(text) for member in members)
            safe = sum(self.world.safe(member.person, text) for member in members) if qos == 1 else copies
            is_due = any(self.wants(member, text) for member in members)
            self.verdict.judged += is_due
            if safe > is_due or (is_due and not copies):
                self.verdict.wrong.append(
                    f"{topic} number {number} of {publisher} came {copies} times to {filter_} in {region}"
                )

    def _judge_order(self) -> None:
        for each in self.subscribers:
            last: dict[tuple[str, str, int], int] = {}
            seen: set[bytes] = set()
            for text in each.person.got:
                publisher, topic, qos, number, _, _ = self.messages[text]
                if text in seen or each.share or (text in self.retained and not (qos and each.is_early)):
                    continue  # what is retained is brought again to who had to do without
                seen.add(text)
                flow = publisher, topic, qos
                if number < last.get(flow, 0):
                    self.verdict.wrong.append(f"{each.person.name}: {flow} number {number} behind {last[flow]}")
                last[flow] = max(number, last.get(flow, 0))

    def end(self) -> None:
        """Everybody leaves, and in a while no gateway asks for anything any more."""
        for each in self.subscribers:
            self.world.unsubscribe(each.person)
        self.world.clock.run_for(14)
        for number in self.world.brokers:
            node = self.world.brokers[number].node
            assert node is not None
            for broker, known in node.interests.known.items():
                left = [entry for entry in known.entries if not entry.filter.startswith("$SYS/")]
                if left:
                    self.verdict.wrong.append(f"{number} believes that {node.directory.names[broker]} wants {left}")


def run_history(kind: Kind, seed: int) -> Verdict:
    """One history from its beginning to its verdict."""
    history = _History(kind, seed)
    history.build()
    history.world.clock.run_for(1.5)
    history.people()
    history.faults()
    history.world.clock.run_for(FAULTS_S)
    history.run_empty()
    history.judge()
    history.end()
    history.verdict.story = history.world.story
    return history.verdict
