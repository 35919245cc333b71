"""What a ring owes where nobody knows everybody: call :func:`check_ring` with how to make a broker, and seeds.

A history is a ring of 5 to 14 brokers whose clients ask for filters and boxes, eight seconds of publications with QoS 0
and 1, subscriptions that grow, and faults.  Then everything heals, runs empty, and is judged against all subscriptions
by brute force: what was accepted is at each broker whose subscription had been acknowledged before, once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from random import Random
from typing import Final

from tests.kits import history
from tests.kits.history import histories
from tests.kits.ring_world import SETTINGS, Broker, Make, Message, RingHistory
from tieline.match.box import Box
from tieline.overlay.ring.events import Event, RingSubscription
from tieline.overlay.ring.node import RingNode
from tieline.sim.ring.workload import TYPE

FAULTS_S: Final = 8.0
#: When everything must have run empty, after the last fault.
EMPTY_S: Final = 60.0
_FILTERS: Final = ("site/+/reading", "site/1/#", "alarm/fire", "alarm/#", "site/2/reading")
_TOPICS: Final = ("site/1/reading", "site/2/reading", "alarm/fire")


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing
    CRASHES = "crashes"  # brokers crash, some around a commit, some without a sign, and come back
    STANDING = "standing"  # brokers stand still, for less or more than others wait
    GUESTS = "guests"  # brokers join and leave
    LINKS = "links"  # pairs of brokers cannot reach each other for a while


@dataclass
class Verdict(history.Verdict):
    """What was wrong with a history, and how it went."""

    kind: Kind
    deliveries: int = 0
    #: Pairs of a message and a broker that had to get it.
    owed: int = 0


def check_ring(make: Make, kind: Kind, seeds: Iterable[int], dispatch: str = "arcs") -> int:
    """Run histories and fail at the first that is wrong, with its story; how many deliveries had to be."""
    owed = 0
    for verdict in histories(seeds, lambda seed: run_history(make, kind, seed, dispatch)):
        owed += verdict.owed
    return owed


def run_history(make: Make = RingNode, kind: Kind = Kind.CALM, seed: int = 0, dispatch: str = "arcs") -> Verdict:
    """One history from its beginning to its verdict."""
    random = Random(f"ring {kind.value} {seed}")
    world = RingHistory(random, make, dispatch)
    names = [f"b{number}" for number in range(random.randint(5, 14))]
    world.start(names[0], None)
    for number, name in enumerate(names[1:]):
        world.clock.run_for(random.choice((0.0, 0.05, 0.3)))
        world.start(name, random.choice(names[: number + 1]))
    for name in names:
        for _ in range(random.randint(0, 2)):
            world.subscribe(name, _subscription(random))
    world.clock.run_for(6.0)
    _plan_clients(world, names)
    _plan_faults(world, names, kind)
    world.clock.run_for(FAULTS_S)
    verdict = Verdict(seed, kind)
    _run_empty(world, verdict)
    _judge(world, verdict)
    verdict.story = world.story
    return verdict


def _subscription(random: Random) -> RingSubscription:
    if random.random() < 0.4:
        return RingSubscription(random.choice(_FILTERS))
    corner = [random.random() * 0.7 for _ in range(2)]
    size = random.uniform(0.1, 0.3)
    return RingSubscription(
        random.choice(("#", "site/+/reading")), TYPE, Box(tuple(corner), tuple(at + size for at in corner))
    )


def _plan_clients(world: RingHistory, names: list[str]) -> None:
    random = world.random
    for number in range(120):
        topic = random.choice(_TOPICS)
        is_typed = topic != "alarm/fire"
        point = (random.random(), random.random()) if is_typed else ()
        event = Event(topic, f"m{number}".encode(), TYPE if is_typed else "", point)
        at, name, lane = random.uniform(0.0, FAULTS_S), random.choice(names), random.randrange(2)
        is_assured = random.random() < 0.8
        world.clock.after(
            at,
            lambda _now, name=name, event=event, lane=lane, assured=is_assured: world.publish(  # type: ignore[misc]
                name, event, lane, is_assured=assured
            ),
        )
    for _ in range(6):
        name, one = random.choice(names), _subscription(random)
        world.clock.after(random.uniform(0, FAULTS_S), lambda _now, name=name, one=one: world.subscribe(name, one))  # type: ignore[misc]


def _plan_faults(world: RingHistory, names: list[str], kind: Kind) -> None:
    random, later = world.random, world.clock.after
    if kind is Kind.CRASHES:
        for _ in range(random.randint(1, max(1, len(names) // 3))):
            name, how = random.choice(names), random.choice(("", "", "before", "after"))
            later(random.uniform(0.5, FAULTS_S - 2), partial(_crash, world, name, how))
    if kind is Kind.STANDING:
        for _ in range(random.randint(1, 3)):
            name, for_s = random.choice(names), random.choice((0.3, 0.9, 3.0))
            later(random.uniform(0.5, FAULTS_S - 3), lambda _now, name=name, for_s=for_s: world.stand(name, for_s))  # type: ignore[misc]
    if kind is Kind.GUESTS:
        for number in range(random.randint(1, 4)):
            later(random.uniform(0.2, FAULTS_S - 2), partial(_join, world, f"guest{number}"))
        for name in random.sample(names, random.randint(1, len(names) // 2)):
            later(random.uniform(0.2, FAULTS_S - 2), lambda _now, name=name: world.leave(name))  # type: ignore[misc]
    if kind is Kind.LINKS:
        for _ in range(random.randint(1, 4)):
            one, other = random.sample(names, 2)
            for_s = random.choice((0.05, 0.5, 2.0))
            later(
                random.uniform(0.2, FAULTS_S - 2.5),
                lambda _now, one=one, other=other, for_s=for_s: world.cut(one, other, for_s),  # type: ignore[misc]
            )


def _crash(world: RingHistory, name: str, how: str, now: float) -> None:
    if how:
        world.brokers[name].crashes_at = how
    else:
        world.crash(name, world.random.uniform(0.1, 4.0), is_silent=world.random.random() < 0.5)


def _join(world: RingHistory, name: str, now: float) -> None:
    via = world.somebody()
    if via is not None:
        world.start(name, via)
        world.subscribe(name, _subscription(world.random))


# -- how it is judged


def _run_empty(world: RingHistory, verdict: Verdict) -> None:
    for broker in world.brokers.values():
        broker.crashes_at = ""
    end = world.clock.now + EMPTY_S
    while world.clock.now < end:
        world.clock.run_for(1.0)
        running = [broker for broker in world.brokers.values() if not broker.has_left]
        if all(broker.node is not None and not broker.node.unfinished for broker in running) and _is_round(running):
            world.tell("everything has run empty")
            return
    for broker in world.brokers.values():
        if not broker.has_left and (broker.node is None or broker.node.unfinished):
            verdict.wrong.append(f"{broker.name} has not run empty: {broker.node and broker.node.unfinished}")
    if not _is_round([broker for broker in world.brokers.values() if not broker.has_left]):
        verdict.wrong.append("the ring is not round")


def _is_round(brokers: list[Broker]) -> bool:
    """Whether everybody's successor is the next one."""
    in_order = sorted(brokers, key=lambda broker: broker.peer.identifier)
    for place, broker in enumerate(in_order):
        behind = in_order[(place + 1) % len(in_order)].peer
        if broker.node is None or not broker.node.upkeep.is_joined:
            return False
        if len(in_order) > 1 and broker.node.table.successor != behind:
            return False
    return True


def _judge(world: RingHistory, verdict: Verdict) -> None:
    by_text = {message.text: message for message in world.messages}
    for broker in world.brokers.values():
        if broker.node is not None:
            broker.node.table.check()
        log = broker.store.log
        verdict.deliveries += len(log) + len(broker.given)
        if len(set(log)) != len(log):
            verdict.wrong.append(
                f"doubled at {broker.name}: {sorted(text for text in set(log) if log.count(text) > 1)}"
            )
        last: dict[tuple[str, int], int] = {}
        for text in log:
            message = by_text[text]
            if message.number < last.get((message.origin, message.lane), -1):
                verdict.wrong.append(f"{text!r} is out of order at {broker.name}")
            last[message.origin, message.lane] = message.number
        held = {*log, *broker.given}
        for message in world.messages:
            if _is_owed(message, broker, verdict.kind):
                verdict.owed += 1
                if message.text not in held:
                    verdict.wrong.append(
                        f"lost: {message.text!r} of {message.origin} at {message.at - 1000:.3f} at {broker.name}"
                    )


def _is_owed(message: Message, broker: Broker, kind: Kind) -> bool:
    if message.origin == broker.name or broker.node is None or broker.is_leaving:
        return False
    if message.is_assured and not message.is_accepted:
        return False
    if not message.is_assured and kind is not Kind.CALM:
        return False
    return any(
        grant.is_echoed
        and grant.life == broker.life
        and 0 < grant.at < message.at
        and broker.away_at + (2 * SETTINGS.lease_s if broker.away_at else 0) < message.at
        and grant.subscription.may_want(message.event)
        for grant in broker.grants
    )
