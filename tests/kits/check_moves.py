"""What brokers owe clients that move between them: :func:`check_moves` runs histories by seed and judges each.

A history has 3 to 5 whole brokers, publishers and subscribers with sessions that outlive their connections, and six
seconds in which clients move, links fail and brokers crash.  Then everything heals, every client connects somewhere,
and what each has got is compared with what was accepted: nothing lost, nothing doubled, nothing out of order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from random import Random
from typing import Final

from tests.kits import history
from tests.kits.history import histories
from tests.kits.invariants import check
from tests.kits.moves_world import Client, Home, MovesWorld
from tieline.overlay.joined import Joined
from tieline.wire.topics import matches

FAULTS_S: Final = 6.0
EMPTY_S: Final = 60.0
_TOPICS: Final = ("grid/a", "grid/b", "site/1")
_FILTERS: Final = ("grid/a", "grid/+", "site/#", "#")


class Kind(StrEnum):
    """What goes wrong in a history."""

    CALM = "calm"  # nothing: clients move
    LINKS = "links"  # links are cut and fall silent
    CRASHES = "crashes"  # brokers crash, most of them around a commit
    RETURNS = "returns"  # clients go and come back at once, links fall silent, and the broker that they left crashes
    NEWCOMERS = "newcomers"  # brokers begin and join for the first time, links fail and brokers crash
    ISLANDS = "islands"  # some brokers are cut off for less or more than clients wait for their sessions


@dataclass
class Verdict(history.Verdict):
    """What was wrong with a history, and how it went."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    misordered: list[str] = field(default_factory=list)
    moves: int = 0
    deliveries: int = 0
    #: What came out of order where a broker had counted that it did not wait for that.
    excused: int = 0

    def faults(self) -> dict[str, list[str]]:
        """With each kind of fault apart."""
        named = {"lost": self.lost, "doubled": self.doubled, "misordered": self.misordered}
        return named | super().faults()


def check_moves(
    kind: Kind, seeds: Iterable[int], joined: type[Joined] = Joined, strategy: str = "path"
) -> tuple[int, int]:
    """Run histories and fail at the first that is wrong; how many moves and deliveries there were."""
    moves = deliveries = 0
    for verdict in histories(seeds, lambda seed: run_history(kind, seed, joined, strategy)):
        moves, deliveries = moves + verdict.moves, deliveries + verdict.deliveries
    return moves, deliveries


class History:
    """One history, as it is made."""

    def __init__(self, kind: Kind, seed: int, joined: type[Joined], strategy: str) -> None:
        self.random = Random(f"moves {kind.value} {seed}")
        self.kind = kind
        self.world = MovesWorld(self.random, joined, strategy)
        self.verdict = Verdict(seed, kind)
        #: By payload: who published it, when, on which topic, with which QoS and number.
        self.published: dict[bytes, tuple[str, float, str, int, int]] = {}
        self.subscribers: list[Client] = []
        self.publishers: list[Client] = []
        self.is_over = False
        self._numbers: dict[tuple[str, str, int], int] = {}

    def build(self) -> None:
        random, world = self.random, self.world
        brokers = list(range(1, random.randint(3, 5) + 1))
        for number in brokers:
            world.start(number)
        pairs = {(random.choice(brokers[:index]), broker) for index, broker in enumerate(brokers) if index}
        others = [pair for pair in combinations(brokers, 2) if pair not in pairs]
        pairs |= set(random.sample(others, min(len(others), random.randint(1, 2))))
        for one, other in sorted(pairs):
            world.join(one, other, random.uniform(0.002, 0.05), random.choice((16_000.0, 125_000.0)))
        world.tell(f"links {sorted(pairs)}")
        # everybody has heard of everybody before clients come
        world.clock.run_for(1.5)
        for number in range(random.randint(2, 3)):
            client = world.client(f"s{number}")
            filters = random.sample(_FILTERS, random.randint(1, 2))
            client.wants = {filter_: random.choice((1, 2, 2)) for filter_ in filters}
            self.subscribers.append(client)
        self.publishers = [world.client(f"p{number}") for number in range(random.randint(2, 3))]
        for client in world.clients:
            client.connect(world.home(random.choice(brokers)))
        world.clock.run_for(1.5)

    def plan(self) -> None:
        random, world = self.random, self.world
        for client in self.publishers:
            topics = random.sample(_TOPICS, 2)
            for _ in range(25):
                at = random.uniform(0, FAULTS_S)
                topic, qos = random.choice(topics), random.choice((1, 2))
                self.world.later(at, self.publish, client, topic, qos)
        for client in self.subscribers:
            for _ in range(random.randint(2, 4)):
                self.world.later(random.uniform(0, FAULTS_S), self.move, client)
        for client in self.publishers:
            for _ in range(random.randint(0, 2)):
                self.world.later(random.uniform(0, FAULTS_S), self.move, client)
        if self.kind is not Kind.CALM:
            self._plan_link_faults()
        if self.kind is Kind.ISLANDS:
            for _ in range(random.randint(1, 2)):
                self.world.later(random.uniform(0.2, 4.0), self._island, random.uniform(1.0, 9.0))
        if self.kind is Kind.CRASHES:
            for _ in range(random.randint(2, 4)):
                how = random.choice(("", "before", "after", "before", "after"))
                self.world.later(random.uniform(0.2, FAULTS_S - 1.5), self._crash, how)
        if self.kind is Kind.NEWCOMERS:
            for _ in range(random.randint(1, 2)):
                self.world.later(random.uniform(0.2, 4.0), self._newcomer)
            for _ in range(random.randint(1, 3)):
                self.world.later(random.uniform(0.2, FAULTS_S - 1.5), self._crash, "")
        if self.kind is Kind.RETURNS:
            for client in self.subscribers:
                for _ in range(2):
                    self.world.later(random.uniform(0.2, FAULTS_S - 2.0), self._return, client)
        for client in world.clients:
            self.world.later(0.2, self._look_after, client)

    def _plan_link_faults(self) -> None:
        random, world = self.random, self.world
        for _ in range(random.randint(3, 6)):
            for_s = random.choice((random.uniform(0.01, 0.1), random.uniform(0.1, 1.2)))
            cable = random.choice(world.cables)
            self.world.later(random.uniform(0.2, FAULTS_S - for_s), world.cut, cable, for_s)
        for _ in range(random.randint(1, 3)):
            cable, for_s = random.choice(world.cables), random.choice((random.uniform(0.05, 0.5), 2.0))
            end = random.choice(cable.ends)
            at = random.uniform(0.2, 3.5)
            self.world.later(at, world.silence, cable, end, for_s)

    def _island(self, for_s: float) -> None:
        numbers = sorted(self.world.brokers)
        island = set(self.random.sample(numbers, self.random.randint(1, len(numbers) - 1)))
        self.world.tell(f"{sorted(island)} become an island for {for_s:.2f}")
        for cable in self.world.cables:
            if len(island.intersection(cable.ends)) == 1:
                self.world.cut(cable, for_s)

    def _crash(self, how: str) -> None:
        number = self.random.choice(sorted(self.world.brokers))
        if how:
            self.world.brokers[number].crashes_at = how
        else:
            self.world.crash(number, self.random.uniform(0.1, 1.5))

    def _newcomer(self) -> None:
        random, world = self.random, self.world
        number, other = max(world.brokers) + 1, random.choice(sorted(world.brokers))
        world.tell(f"{number} is new, and joins {other}")
        world.start(number)
        world.join(number, other, random.uniform(0.002, 0.05), 125_000.0)

    def _return(self, client: Client) -> None:
        """A client goes and comes back while a broker is out of reach; the one where it is crashes after that."""
        home = client.home
        if home is None or home.core is None:
            return
        random, world = self.random, self.world
        cable = random.choice(world.cables)
        world.silence(cable, random.choice(cable.ends), random.uniform(0.5, 2.0))
        self.move(client)
        world.later(random.uniform(0.1, 0.5), self._move_to, client, home)
        world.later(random.uniform(0.6, 1.5), world.crash, home.number, random.uniform(0.1, 0.5))

    def publish(self, client: Client, topic: str, qos: int) -> None:
        flow = client.client_id, topic, qos
        number = self._numbers[flow] = self._numbers.get(flow, 0) + 1
        payload = f"{client.client_id}|{topic}|{qos}|{number}".encode()
        self.published[payload] = client.client_id, self.world.clock.now, topic, qos, number
        client.publish(topic, payload, qos)

    def move(self, client: Client) -> None:
        nodes = {number: self.world.brokers[number].node for number in sorted(self.world.brokers)}
        # who has never met anybody knows nothing of what others want
        alive = [number for number, node in nodes.items() if node is not None and len(node.directory.names) > 1]
        if self.is_over or not alive:
            return
        self._move_to(client, self.world.home(self.random.choice(alive)))

    def _move_to(self, client: Client, home: Home) -> None:
        self.world.tell(f"{client.client_id} goes to {home.number}")
        self.verdict.moves += 1
        client.connect(home)

    def _look_after(self, client: Client) -> None:
        """A client that has lost its broker comes back somewhere."""
        if client.conn is None or (client.home is not None and client.home.core is None):
            self.move(client)
        self.world.clock.after(self.random.uniform(0.2, 0.5), lambda _now: self._look_after(client))

    # -- the end

    def run_empty(self) -> None:
        world = self.world
        for broker in world.brokers.values():
            broker.crashes_at = ""
        world.clock.run_for(8)
        self.is_over = True
        end = world.clock.now + EMPTY_S
        while world.clock.now < end:
            world.clock.run_for(0.5)
            if self._is_empty():
                world.tell("everything has run empty")
                return
        for number in world.brokers:
            home = world.home(number)
            if home.joined is not None:
                passages = home.joined.moves.passages
                left = [repr(each) for each in (*passages.arriving.values(), *passages.leaving.values())]
                self.verdict.wrong.append(f"{number} has not run empty: {home.joined.node.unfinished}, {left}")
        for client in world.clients:
            if not client.is_in or client.unanswered:
                self.verdict.wrong.append(f"{client.client_id} is in: {client.is_in}, unanswered {client.unanswered}")

    def _is_empty(self) -> bool:
        homes = [self.world.home(number) for number in self.world.brokers]
        if any(home.joined is None or home.core is None for home in homes):
            return False
        if any(home.joined.node.unfinished or len(home.joined.moves.passages) for home in homes if home.joined):
            return False
        sessions = [session for home in homes if home.core for session in home.core.sessions.values()]
        if any(session.queue.messages or session.inflight for session in sessions):
            return False
        return all(client.is_in and not client.unanswered for client in self.world.clients)

    def judge(self) -> None:
        world, verdict = self.world, self.verdict
        for client in self.subscribers:
            self._judge_client(client)
        if world.not_awaited:
            # it waits for so long, and no longer; nothing is lost by that
            verdict.excused, verdict.misordered = len(verdict.misordered), []
        for number in world.brokers:
            home = world.home(number)
            if home.node is not None:
                home.node.check()
            if home.core is not None:
                check(home.core)
        for client in world.clients:
            if not all(client.sessions[1:]) and self.kind is not Kind.ISLANDS:
                verdict.wrong.append(f"{client.client_id} was told of sessions {client.sessions}")
            held = [n for n in world.brokers if world.home(n).core and client.client_id in world.home(n).core.sessions]  # type: ignore[union-attr]  # asked for just before
            if len(held) != 1:
                verdict.wrong.append(f"{client.client_id} has sessions at {held}")

    def _judge_client(self, client: Client) -> None:
        verdict = self.verdict
        accepted = {payload for publisher in self.publishers for _, payload, _ in publisher.accepted}
        # a session that could not be fetched began anew: what was on its way then may come twice, and late
        renewed = {each.client_id for each in self.world.clients if not all(each.sessions[1:])}
        first: dict[bytes, int] = {}
        for at, (payload, _qos, _dup) in enumerate(client.got):
            who, _, topic, qos, _ = self.published[payload]
            is_anew = not all(client.sessions[1:]) or who in renewed
            if payload in first and qos == 2 and self._granted_qos(client, topic) == 2 and not is_anew:
                verdict.doubled.append(f"{payload!r} at {client.client_id}")
            first.setdefault(payload, at)
        last: dict[tuple[str, str, int], int] = {}
        for payload in first:
            who, _, topic, qos, number = self.published[payload]
            flow = who, topic, qos
            if number < last.get(flow, 0) and not renewed.intersection((who, client.client_id)):
                verdict.misordered.append(f"{payload!r} behind {last[flow]} at {client.client_id}")
            last[flow] = max(number, last.get(flow, 0))
        verdict.deliveries += len(first)
        for payload in accepted:
            _, published_at, topic, _, _ = self.published[payload]
            filters = [filter_ for filter_ in client.wants if matches(filter_, topic)]
            is_promised = any(client.granted.get(filter_, published_at) < published_at for filter_ in filters)
            if is_promised and payload not in first:
                verdict.lost.append(
                    f"{payload!r} at {client.client_id}, published {published_at - self.world._began:.3f}"
                )

    @staticmethod
    def _granted_qos(client: Client, topic: str) -> int:
        return max((qos for filter_, qos in client.wants.items() if matches(filter_, topic)), default=0)


def run_history(kind: Kind, seed: int, joined: type[Joined] = Joined, strategy: str = "path") -> Verdict:
    """One history from its beginning to its verdict."""
    history = History(kind, seed, joined, strategy)
    history.build()
    history.plan()
    history.world.clock.run_for(FAULTS_S)
    history.run_empty()
    history.judge()
    history.verdict.story = history.world.story
    return history.verdict
