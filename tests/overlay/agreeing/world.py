"""Brokers that agree in virtual time: the shipped rounds over links with delays, and nothing else of a broker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random

from tieline.core.timers import Timers
from tieline.overlay.agreeing.agreeing import Agreeing
from tieline.overlay.agreeing.inputs import chances
from tieline.overlay.agreeing.round import CountedTopic
from tieline.overlay.frames.frame import Notice
from tieline.overlay.membership import LinkState, Membership
from tieline.overlay.plans import PlanError, PlanPiece


class Counted:
    """Says what was counted, in two parts."""

    def __init__(self) -> None:
        self.flows: list[CountedTopic] = []
        self.filters: list[str] = []
        self.trouble = ""
        self._parts = 0

    def begin(self, for_s: float, now: float) -> None:
        if self.trouble:
            raise PlanError(self.trouble)
        self._parts = 0

    def take(self, now: float) -> tuple[list[CountedTopic], list[str], float, bool]:
        self._parts += 1
        if self._parts == 1:
            return self.flows, [], 1.0, False
        return [], self.filters, 1.0, True


class World:
    """Brokers by name, and links between them with a capacity in bytes in a second."""

    def __init__(
        self, links: Mapping[tuple[str, str], float | None], *, seed: int = 0, ends: tuple[str, ...] = ()
    ) -> None:
        self.names = sorted({name for pair in links for name in pair})
        self.random = Random(seed)
        self.now = 1_000.0
        self.timers = Timers()
        self.links = links
        self.counted = {name: Counted() for name in self.names}
        self.pieces: dict[str, PlanPiece] = {}
        self.in_force: dict[str, int] = {}
        self.brokers: dict[str, Agreeing] = {}
        self.members: dict[str, Membership] = {}
        self._last: dict[tuple[str, str], float] = {}
        number = {name: at for at, name in enumerate(self.names, 1)}
        self.number = number
        for name in self.names:
            member = self.members[name] = Membership(number[name], 1, number[name], dict(map(reversed, number.items())))  # type: ignore[arg-type]
            for other in self._beside(name):
                member.connect(number[other], 1)
        for name in self.names:
            for other in self.names:
                if other != name:
                    neighbours = {number[each]: 1 for each in self._beside(other)}
                    self.members[name].heard(LinkState(number[other], 1, 1, number[other], neighbours))
            made = self.brokers[name] = Agreeing(
                name,
                self.members[name],
                self.counted[name],
                timers=self.timers,
                send=partial(self._send, name),
                is_end=lambda broker: self.names[broker - 1] in ends,
                install=partial(self._install, name),
                use=partial(self._use, name),
                chance=chances(seed * 1_000 + number[name]),
            )
            made.capacity = partial(self._capacity, name)

    def _install(self, name: str, piece: PlanPiece, now: float) -> None:
        self.pieces[name] = piece

    def _use(self, name: str, epoch: int, now: float) -> None:
        self.in_force[name] = epoch

    def _capacity(self, name: str, peer: str) -> float | None:
        return self.links[min(name, peer), max(name, peer)]

    def _beside(self, name: str) -> list[str]:
        return [one if other == name else other for one, other in self.links if name in (one, other)]

    def publishes(self, name: str, topic: str, rate: float) -> None:
        """Clients of a broker publish; 90 of these bytes are what each message takes beside its packet."""
        self.counted[name].flows.append(CountedTopic(topic, 1, 1, int(rate) - 90))

    def wants(self, name: str, *filters: str) -> None:
        self.counted[name].filters += filters

    def _send(self, sender: str, peer: int, notice: Notice, now: float) -> None:
        target = self.names[peer - 1]
        pair = sender, target
        at = max(self.now + self.random.uniform(0.001, 0.05), self._last.get(pair, 0.0))
        self._last[pair] = at
        copy = Notice(notice.topic, self.number[sender], peer, notice.body, notice.path)
        self.timers.at(at, lambda now: self.brokers[target].heard(copy, now))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (when := self.timers.next()) is not None and when <= end:
            self.now = max(self.now, when)
            self.timers.fire(self.now)
        self.now = end

    def cut(self, one: str, other: str) -> None:
        """A link is down, as both ends see."""
        for name, peer in ((one, other), (other, one)):
            self.members[name].disconnect(self.number[peer])
            self.brokers[name].down(self.number[peer], self.now)

    def way(self, origin: str, topic: str, destination: str) -> list[str]:
        """By which brokers a topic goes; it ends where no piece says how."""
        number = next((each for each, name, _ in self.pieces[origin].topics if name == topic), 0)
        way = [origin]
        while way[-1] != destination and len(way) <= len(self.names):
            after = [
                neighbour
                for source, known, target, neighbour in self.pieces[way[-1]].ways
                if (source, known, target) == (origin, number, destination)
            ]
            if not after:
                break
            way += after
        return way
