"""What joined brokers owe to those who retain something: call :func:`check_retained`.

A history is a seed: a graph of 3 to 6 brokers, one of which may come late; clients that retain, clear and let expire,
some of them at several brokers at once; clients that subscribe now and then; six seconds of faults.  Then everything
heals, and it is judged: all brokers retain the same, of each topic the newest write that nobody may lose, or a newer
one; and whoever was subscribed has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from random import Random
from typing import Final

from tests.kits import history
from tests.kits.history import histories
from tests.kits.overlay_world import Broker
from tests.kits.retained_world import Join, Reader, RetainedWorld, Write
from tieline.overlay.joined import Joined
from tieline.wire.topics import matches

FAULTS_S: Final = 6.0
#: When all must agree, after the last fault.
AGREED_S: Final = 60.0
_TOPICS: Final = ("grid/a/v", "grid/a/i", "grid/b/v", "site/1", "site/2", "alarm")
_FILTERS: Final = ("#", "grid/#", "+/1", "alarm", "grid/+/v", "site/2")


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing
    LINKS = "links"  # links are cut, flap and fall silent; islands
    CRASHES = "crashes"  # brokers crash, half of them around a commit, and links are cut; wall clocks are wrong and set
    VOLATILE = "volatile"  # as before, and some brokers have no store


@dataclass
class Verdict(history.Verdict):
    """What was wrong with a history, and how it went."""

    kind: Kind
    #: Topics at brokers that were compared, and those at readers.
    judged: int = 0


def check_retained(kind: Kind, seeds: Iterable[int], join: Join = Joined) -> int:
    """Run histories and fail at the first that is wrong, with its story; how much was judged."""
    judged = 0
    for verdict in histories(seeds, lambda seed: run_history(kind, seed, join)):
        judged += verdict.judged
    return judged


def run_history(kind: Kind, seed: int, join: Join = Joined) -> Verdict:
    """One history from its beginning to its verdict."""
    random = Random(f"{kind.value} {seed}")
    world = RetainedWorld(random, join)
    _build(world, kind)
    _plan_clients(world, kind)
    _plan_faults(world, kind)
    world.clock.run_for(FAULTS_S)
    return judge(world, kind, seed)


# -- how a history is made


def _build(world: RetainedWorld, kind: Kind) -> None:
    random = world.random
    brokers = list(range(1, random.randint(3, 6) + 1))
    for number in brokers:
        broker = world.brokers[number] = Broker(number)
        broker.is_volatile = kind is Kind.VOLATILE and random.random() < 0.5
        if kind in {Kind.CRASHES, Kind.VOLATILE}:
            broker.clock_s = random.choice((0.0, 0.0, -3_600.0, 90.0, 7_200.0))
    late = brokers[-1] if random.random() < 0.5 else 0
    for number in brokers:
        if number != late:
            world.start(number)
    pairs = {(random.choice(brokers[:index]), broker) for index, broker in enumerate(brokers) if index}
    others = [pair for pair in combinations(brokers, 2) if pair not in pairs]
    pairs |= set(random.sample(others, min(len(others), random.randint(0, len(brokers) - 2))))
    for one, other in sorted(pairs):
        world.join(one, other, random.uniform(0.002, 0.08), random.choice((16_000.0, 125_000.0)))
    if late:
        world.later(random.uniform(1.0, FAULTS_S - 1.0), world.start, late)
    off = {number: broker.clock_s for number, broker in world.brokers.items()}
    volatile = [number for number, broker in world.brokers.items() if broker.is_volatile]
    world.tell(f"links {sorted(pairs)}, late {late}, clocks {off}, volatile {volatile}")


def _plan_clients(world: RetainedWorld, kind: Kind) -> None:
    random, brokers = world.random, sorted(world.brokers)
    for count in range(60):
        topic, qos = random.choice(_TOPICS), random.choice((0, 1, 1))
        payload = b"" if random.random() < 0.15 else b"%d" % count + b"." * random.randrange(200)
        expires = kind in {Kind.CALM, Kind.LINKS} and random.random() < 0.1
        at = random.uniform(0.3, FAULTS_S)
        number = random.choice(brokers)
        world.later(at, _write, world, number, topic, payload, qos, random.randint(1, 4) if expires else None)
        if random.random() < 0.2:
            # somebody else writes the same topic at about the same time, somewhere else
            other = random.choice(brokers)
            world.later(at + random.uniform(0, 0.01), _write, world, other, topic, b"%d too" % count, qos, None)
    for _ in range(random.randint(2, 6)):
        world.later(random.uniform(0.1, FAULTS_S), _read, world, random.choice(brokers), random.choice(_FILTERS))


def _write(world: RetainedWorld, number: int, topic: str, payload: bytes, qos: int, expiry_s: int | None) -> None:
    if number in world.places:
        world.write(number, topic, payload, qos, expiry_s)


def _read(world: RetainedWorld, number: int, filter_: str) -> None:
    if number in world.places:
        world.read(number, filter_)


def _plan_faults(world: RetainedWorld, kind: Kind) -> None:
    random = world.random
    if kind is Kind.CALM:
        return
    for _ in range(random.randint(3, 7)):
        for_s = random.choice((random.uniform(0.01, 0.1), random.uniform(0.1, 2.0)))
        cable = random.choice(world.cables)
        world.later(random.uniform(0.5, FAULTS_S - for_s), world.cut, cable, for_s)
    for _ in range(random.randint(0, 3)):
        cable = random.choice(world.cables)
        for_s = random.choice((random.uniform(0.05, 0.5), 5.0))
        world.later(random.uniform(0.5, 3.5), world.silence, cable, random.choice(cable.ends), for_s)
    for _ in range(random.randint(0, 2)):
        for_s = random.uniform(0.3, 3)
        world.later(random.uniform(0.5, FAULTS_S - for_s), world.part, for_s)
    if kind is Kind.LINKS:
        return
    for _ in range(random.randint(1, 5)):
        number, how = random.choice(sorted(world.brokers)), random.choice(("", "before", "after"))
        world.later(random.uniform(0.5, FAULTS_S - 1.5), _crash, world, number, how)
    for _ in range(random.randint(0, 3)):
        number, off_s = random.choice(sorted(world.brokers)), random.choice((-3_600.0, -2.0, 60.0, 5_000.0))
        world.later(random.uniform(0, FAULTS_S - 1.5), world.set_clock, number, off_s)


def _crash(world: RetainedWorld, number: int, how: str) -> None:
    if number not in world.places:
        return
    if how and not world.brokers[number].is_volatile:
        world.brokers[number].crashes_at = how
    else:
        world.crash(number, world.random.uniform(0.1, 1.5))


# -- how it is judged


def judge(world: RetainedWorld, kind: Kind, seed: int = 0) -> Verdict:
    """The verdict on what has happened in a world, once all agree."""
    verdict = Verdict(seed, kind, story=world.story)
    _agree(world, verdict)
    _judge_writes(world, verdict)
    for reader in world.readers:
        _judge_reader(world, verdict, reader)
    return verdict


def _agree(world: RetainedWorld, verdict: Verdict) -> None:
    """Wait until all brokers retain the same, and have nothing left to tell or to carry."""
    for broker in world.brokers.values():
        broker.crashes_at = ""
    world.clock.run_for(3)
    end = world.clock.now + AGREED_S
    while world.clock.now < end:
        world.clock.run_for(0.5)
        states = [world.state(number) if world.places[number].joined else None for number in world.brokers]
        if all(state is not None and state == states[0] for state in states) and _is_quiet(world):
            world.tell("all agree")
            return
    for number in world.brokers:
        joined = world.places[number].joined
        text = "away" if joined is None else f"{world.state(number)}, {joined.retaining.sync.unfinished} unfinished"
        verdict.wrong.append(f"{number} does not agree: {text}")


def _is_quiet(world: RetainedWorld) -> bool:
    joined = [place.joined for place in world.places.values()]
    return all(
        each is not None and not each.retaining.sync.unfinished and not each.node.carrier.unfinished for each in joined
    )


def _judge_writes(world: RetainedWorld, verdict: Verdict) -> None:
    """What is retained was written, and nothing newer was that nobody may lose."""
    final = world.state(1)
    for topic in _TOPICS:
        writes = [write for write in world.writes if write.topic == topic]
        verdict.judged += len(world.brokers)
        safe = max((write.order for write in writes if write.is_safe), default=(0, ""))
        clock, name, payload = final.get(topic, (0, "", b""))
        if (clock, name) < safe:
            verdict.wrong.append(f"{topic} is {payload!r} of {name} at {clock}, and {safe} is newer")
        winner = _winner(writes, clock, name)
        if clock and (winner is None or payload not in {winner.payload, *([b""] if _is_over(world, winner) else [])}):
            verdict.wrong.append(f"{topic} is {payload!r}, which nobody wrote at {clock}")


def _winner(writes: list[Write], clock: int, name: str) -> Write | None:
    return next((write for write in writes if write.order == (clock, name)), None)


def _is_over(world: RetainedWorld, write: Write) -> bool:
    return write.until is not None and write.until <= world.clock.now


def _judge_reader(world: RetainedWorld, verdict: Verdict, reader: Reader) -> None:
    """Whoever is subscribed has what is retained in the end, and nothing live twice."""
    if not reader.is_granted:
        verdict.wrong.append(f"{reader.name} at {reader.place} was never granted {reader.filter}")
        return
    for topic, (clock, name, payload) in world.state(reader.place).items():
        if not matches(reader.filter, topic):
            continue
        verdict.judged += 1
        writes = [write for write in world.writes if write.topic == topic]
        winner = _winner(writes, clock, name)
        got = [(text, is_retained) for where, text, is_retained in reader.got if where == topic]
        texts = [text for text, _ in got]
        what = f"{reader.name} at {reader.place}, who is subscribed to {reader.filter}"
        if winner is not None and payload and payload not in texts:
            verdict.wrong.append(f"{what}, never got {payload!r} on {topic}, but {texts}")
        if winner is not None and winner.payload and not payload and _is_lost(world, verdict.kind, winner, reader):
            verdict.wrong.append(f"{what}, never got {winner.payload!r} on {topic}, and nobody says that it expired")
        # what its own broker clears it hears at once, granted or not; and who was given nothing when its broker heard
        # of the clear knows that nothing is retained: what is older by its clock may still come live
        has_heard = b"" in texts or any(where == topic and not text for where, text, _ in reader.before)
        has_heard = has_heard or (clock, name) in {reader.known.get(topic), reader.first.get(topic)}
        if winner is not None and not winner.payload and texts and not has_heard:
            verdict.wrong.append(f"{what}, never heard that {topic} was cleared, but {texts}")
        behind = texts[len(texts) - texts[::-1].index(payload) :] if payload in texts and payload else []
        for text in behind:
            # several may have cleared it
            others = [write for write in writes if write.payload == text]
            # what one broker has accepted is in order for each QoS
            if winner is not None and others and all(_are_in_order(other, winner) for other in others):
                verdict.wrong.append(f"{what}, got {text!r} of the same broker behind the newest on {topic}: {texts}")
        live = [text for text, is_retained in got if not is_retained and text]
        if len(live) != len(set(live)) and verdict.kind is not Kind.VOLATILE:
            verdict.wrong.append(f"{what}, got something twice on {topic}: {live}")


def _are_in_order(one: Write, other: Write) -> bool:
    return not one.qos | other.qos and one.place == other.place


def _is_lost(world: RetainedWorld, kind: Kind, write: Write, reader: Reader) -> bool:
    """Whether a reader should have got what has expired since: it did not, and nothing was in the way or nobody says.

    What is under way for longer than it lasts is over for whoever waits for it, whoever else has had it.
    """
    has_promise = write.qos > 0 or kind is Kind.CALM
    if not has_promise or reader.granted_at > write.at or reader.place not in write.live:
        return False
    if any(topic == write.topic and text == write.payload for topic, text, _ in reader.got):
        return False
    return kind is Kind.CALM or not world.says_expired(write, reader)
