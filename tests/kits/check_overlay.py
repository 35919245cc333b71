"""What every strategy owes under the carrier: call :func:`check_overlay` with how to make a broker.

A history is a seed: a graph of 4 to 8 brokers with links of some delay and rate, publications of two classes with QoS 0
to 2, subscriptions that grow, some with conditions, and six seconds of faults.  Then everything heals, runs empty, and
is judged by what was accepted, wanted and committed: nothing lost, doubled or out of order, no broker twice on a path,
nothing left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from random import Random
from typing import Final

from tests.kits import history
from tests.kits.history import histories
from tests.kits.overlay_world import Broker, Cable, Choice, Make, Message, World, wants, wish_of

FAULTS_S: Final = 6.0
#: When everything must have run empty, after the last fault.
EMPTY_S: Final = 40.0
_TOPICS: Final = ("grid/a/v", "grid/a/i", "grid/b/v", "site/1", "site/2", "alarm/fire")
_FILTERS: Final = (*_TOPICS, "grid/+/v", "grid/a/+", "grid/#", "site/+", "alarm/#", "#", "grid/#?v>50", "site/+?v>80")


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing
    LINKS = "links"  # links are cut, flap and fall silent, and the graph stays whole
    PARTITIONS = "partitions"  # it does not
    CRASHES = "crashes"  # brokers crash, half of them around a commit, and links are cut
    VOLATILE = "volatile"  # as before, and some have no store, and clocks are set back
    GUESTS = "guests"  # brokers join and leave, links are cut, and some crash


@dataclass
class Verdict(history.Verdict):
    """What was wrong with a history, and how it went."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    misordered: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    deliveries: int = 0

    def faults(self) -> dict[str, list[str]]:
        """With each kind of fault apart."""
        named = {"lost": self.lost, "doubled": self.doubled, "misordered": self.misordered, "loop": self.loops}
        return named | super().faults()


def check_overlay(make: Make, kind: Kind, seeds: Iterable[int], *, switching: Sequence[Choice] = ()) -> int:
    """Run histories and fail at the first that is wrong, with its story; the number of deliveries judged.

    Brokers change to one of the strategies in ``switching`` now and then, each when it likes.
    """
    deliveries = 0
    for verdict in histories(seeds, lambda seed: run_history(make, kind, seed, switching=switching)):
        deliveries += verdict.deliveries
    return deliveries


def run_history(make: Make, kind: Kind, seed: int, *, switching: Sequence[Choice] = ()) -> Verdict:
    """One history from its beginning to its verdict."""
    random = Random(f"{kind.value} {seed}")
    world = World(random, make)
    _build(world, kind)
    _plan_clients(world)
    _plan_faults(world, kind)
    for _ in range(3 * len(world.brokers) if switching else 0):
        number = random.choice(sorted(world.brokers))
        world.later(random.uniform(0.3, FAULTS_S), world.use, number, random.choice(switching))
    world.clock.run_for(FAULTS_S)
    verdict = judge(world, kind, seed)
    _unsubscribe(world, verdict)
    return verdict


# -- how a history is made


def _build(world: World, kind: Kind) -> None:
    random = world.random
    brokers = list(range(1, random.randint(4, 6 if kind is Kind.GUESTS else 8) + 1))
    for number in brokers:
        if kind is Kind.VOLATILE and random.random() < 0.6:
            world.brokers[number] = Broker(number, is_volatile=True)
        world.start(number)
    if kind is Kind.VOLATILE:
        world.tell(f"volatile {[number for number, broker in world.brokers.items() if broker.is_volatile]}")
    pairs = {(random.choice(brokers[:index]), broker) for index, broker in enumerate(brokers) if index}
    others = [pair for pair in combinations(brokers, 2) if pair not in pairs]
    pairs |= set(random.sample(others, min(len(others), random.randint(1, len(brokers) - 1))))
    for one, other in sorted(pairs):
        world.join(one, other, random.uniform(0.002, 0.08), random.choice((16_000.0, 125_000.0)))
    world.tell(f"links {sorted(pairs)}")


def _plan_clients(world: World) -> None:
    random, brokers = world.random, sorted(world.brokers)
    for number in brokers:
        for filter in random.sample(_FILTERS, random.randint(0, 2)):
            world.subscribe(number, filter)
    for _ in range(4):
        world.later(random.uniform(0.5, FAULTS_S), world.subscribe, random.choice(brokers), random.choice(_FILTERS))
    for publisher in range(random.randint(3, 5)):
        home, topics = random.choice(brokers), random.sample(_TOPICS, 2)
        for _ in range(30):
            topic, qos, count = random.choice(topics), random.choice((0, 1, 1, 2)), random.randint(1, 3)
            level = 3 if topic.startswith("alarm") else 1
            at = random.uniform(0.3, FAULTS_S)
            world.later(at, world.publish, home, publisher, topic, qos, level, count)


def _plan_faults(world: World, kind: Kind) -> None:
    random = world.random
    if kind is Kind.CALM:
        return
    for _ in range(random.randint(4, 8)):
        for_s = random.choice((random.uniform(0.01, 0.1), random.uniform(0.1, 1.5)))
        at = random.uniform(0.5, FAULTS_S - for_s)
        world.later(at, _cut, world, random.choice(world.cables), for_s, kind is Kind.LINKS)
    for _ in range(random.randint(2, 5)):
        cable, for_s = random.choice(world.cables), random.choice((random.uniform(0.05, 0.5), 2.5))
        world.later(random.uniform(0.5, 3.5), world.silence, cable, random.choice(cable.ends), for_s)
    if kind is Kind.PARTITIONS:
        for _ in range(random.randint(1, 3)):
            for_s = random.uniform(0.3, 3)
            world.later(random.uniform(0.5, FAULTS_S - for_s), world.part, for_s)
    if kind is Kind.VOLATILE:
        for _ in range(random.randint(1, 4)):
            number, off_s = random.choice(sorted(world.brokers)), random.choice((-3_600.0, -2.0, 60.0))
            world.later(random.uniform(0, FAULTS_S - 1.5), world.set_clock, number, off_s)
    if kind is Kind.GUESTS:
        for number in range(len(world.brokers) + 1, len(world.brokers) + random.randint(2, 3)):
            world.later(random.uniform(0.5, 4.0), _join, world, number)
        for number in random.sample(sorted(world.brokers), random.randint(1, 2)):
            world.later(random.uniform(0.5, 4.0), world.leave, number)
    if kind in {Kind.CRASHES, Kind.VOLATILE, Kind.GUESTS}:
        for _ in range(random.randint(2, 5)):
            number, how = random.choice(sorted(world.brokers)), random.choice(("", "before", "after"))
            world.later(random.uniform(0.5, FAULTS_S - 1.5), _crash, world, number, how)


def _join(world: World, number: int) -> None:
    """A broker that was not there before, with a subscriber and a publisher."""
    random = world.random
    others = random.sample([other for other in world.brokers if not world.brokers[other].is_leaving], 2)
    world.start(number)
    for other in others[: random.randint(1, 2)]:
        world.join(other, number, random.uniform(0.002, 0.08), random.choice((16_000.0, 125_000.0)))
    world.tell(f"{number} joins {others}")
    world.subscribe(number, random.choice(_FILTERS))
    for topic in random.choices(_TOPICS, k=10):
        at, qos = random.uniform(0.1, 1.5), random.choice((0, 1, 2))
        world.later(at, world.publish, number, 100 + number, topic, qos, 1, random.randint(1, 3))


def _cut(world: World, cable: Cable, for_s: float, whole: bool) -> None:
    if not whole or world.stays_whole(without=cable):
        world.cut(cable, for_s)


def _crash(world: World, number: int, how: str) -> None:
    if how:
        world.brokers[number].crashes_at = how
    else:
        world.crash(number, world.random.uniform(0.1, 1.5))


# -- how it is judged


def judge(world: World, kind: Kind, seed: int = 0) -> Verdict:
    """The verdict on what has happened in a world, once everything has arrived."""
    verdict = Verdict(seed, kind, story=world.story)
    _run_empty(world, verdict)
    _judge(world, verdict)
    return verdict


def _run_empty(world: World, verdict: Verdict) -> None:
    """Let everything arrive; what is still owed, held or in custody then is left behind."""
    end = world.clock.now + EMPTY_S
    for broker in world.brokers.values():
        broker.crashes_at = ""
    world.clock.run_for(2)
    while world.clock.now < end:
        world.clock.run_for(0.25)
        present = [broker for broker in world.brokers.values() if not broker.has_left]
        is_quiet = all(broker.node is not None and broker.node.unfinished == 0 for broker in present)
        if is_quiet and not any(broker.is_leaving for broker in present):
            world.tell("everything has run empty")
            return
    for number, broker in world.brokers.items():
        if not broker.has_left and (broker.node is None or broker.node.unfinished or broker.is_leaving):
            left = broker.node and {link.peer: len(link) for link in broker.node.links.values()}
            owed = broker.node and [
                (key, stream) for key, stream in broker.node.carrier.sender.outgoing.items() if stream.owing.unsettled
            ]
            verdict.wrong.append(f"{number} has not run empty: custody {left}, owed {owed}")


def _judge(world: World, verdict: Verdict) -> None:
    accepted = [message for message in world.messages if message.is_accepted]
    by_text = {message.text: message for message in world.messages}
    for number, broker in world.brokers.items():
        if broker.node is not None:
            broker.node.check()
        for got in (*broker.logs, *broker.given):
            # a place without bytes is one that its origin had settled: there is no message in it
            _judge_order(verdict, number, [by_text[text] for text in got if text])
        committed = {text for log in broker.logs for text in log}
        given_ever = {text for given in broker.given for text in given}
        for message in accepted:
            is_assured = message.flow[2] > 0
            if number not in message.wanted_by:
                if message.text in committed or message.text in given_ever:
                    verdict.wrong.append(f"{number} got {_name(message)}, which it did not want")
            elif is_assured or verdict.kind is Kind.CALM:
                arrived = committed if is_assured else given_ever
                if message.text not in arrived and not _is_forgotten(world, message, broker):
                    verdict.lost.append(f"{_name(message)} at {number}")
        verdict.deliveries += len(committed) + len(given_ever)
        _judge_grants(world, verdict, broker, accepted)
    verdict.loops += world.loops


def _is_forgotten(world: World, message: Message, receiver: Broker) -> bool:
    """Whether one of both ends had no store and crashed since: nobody can keep what it knew."""
    origin = world.brokers[message.origin]
    if origin.is_volatile and len(origin.began) > message.start:
        return True
    return receiver.is_volatile and receiver.began[-1] > message.at


def _judge_order(verdict: Verdict, number: int, got: list[Message]) -> None:
    seen: set[bytes] = set()
    last: dict[tuple[int, str, int], int] = {}
    for message in got:
        if message.text in seen:
            verdict.doubled.append(f"{_name(message)} at {number}")
        elif message.number < last.get(message.flow, 0):
            verdict.misordered.append(f"{_name(message)} behind {last[message.flow]} at {number}")
        seen.add(message.text)
        last[message.flow] = max(message.number, last.get(message.flow, 0))


def _judge_grants(world: World, verdict: Verdict, broker: Broker, accepted: list[Message]) -> None:
    """A subscription that was acknowledged gets what whoever had echoed it accepts from then on.

    What a broker without a store has echoed ends with it.  Until the news has come to who waits for echoes, which may
    take as long as no way leads there, nobody can know that one is void: the next start of that broker hears of the
    subscription as soon as there is a way.
    """
    number = broker.number
    for filter, grant in broker.filters.items():
        if grant is None:
            verdict.wrong.append(f"{number} was never granted {filter}")
            continue
        at, echoed = grant
        for message in accepted:
            is_wanted = wants(wish_of(filter), message.flow[1], message.value)
            is_promised = message.at > at and message.origin in echoed and is_wanted
            if is_promised and message.origin != number and number not in message.wanted_by:
                origin = world.brokers[message.origin]
                if not origin.is_volatile or message.start == echoed[message.origin]:
                    verdict.lost.append(f"{_name(message)} at {number}, which was granted {filter}")


def _unsubscribe(world: World, verdict: Verdict) -> None:
    """In the end nobody wants anything, everybody knows it, and nothing is in custody."""
    present = {number: broker for number, broker in world.brokers.items() if broker.node is not None}
    for broker in present.values():
        assert broker.node is not None
        for filter in broker.filters:
            broker.node.unsubscribe(wish_of(filter), 1, world.clock.now)
        world.serve(broker)
    world.clock.run_for(6)
    for number, broker in present.items():
        if broker.node is None:
            continue  # it has left meanwhile, and that is told already
        wanted = {other: entries for other, (_, entries) in broker.node.interests.known.items() if entries}
        if wanted or broker.node.unfinished:
            verdict.wrong.append(f"{number} still knows {wanted}, {broker.node.unfinished} unfinished")


def _name(message: Message) -> str:
    publisher, topic, qos = message.flow
    return f"{topic} number {message.number} of publisher {publisher} at {message.origin} with QoS {qos}"
