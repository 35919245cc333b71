"""Carries messages from the broker that accepted them to all that want them: once, and in the order of a lane.

Theory of operation
-------------------
The origin knows who wants a message and writes the set of destinations into the frame.  Each hop splits the set by
neighbour, so a destination is in exactly one copy (where the strategy asks for one).  Per destination the frame has a
number in the stream (origin, destination, lane): the destination takes every number once and in order, whichever way it
came.  Hops keep a frame in custody until the next one has it (:mod:`tieline.overlay.links.links`); the ends acknowledge
too, so nothing depends on the memory of a broker in the middle.  A frame is never sent to a broker of its own path.

A path that ends blind is parked, and tried again with an empty path after a moment or with a new view.  A destination
asks for what is missing; an origin sends again what was not settled for long.  Messages with QoS 0 are not kept: who
drops some passes on a void, and a hole that nobody fills is skipped after a moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tieline.core.timers import Timer, Timers
from tieline.overlay.carrier.durable import Ends, Journal, Renewed
from tieline.overlay.carrier.ends import Limits, Surroundings
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.carrier.sender import COPIES_PACE, Sender
from tieline.overlay.carrier.streams import SHORTEST
from tieline.overlay.carrier.taker import Deliver, Taker
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data, Notice, Numbered, Topic, is_assured, level_of
from tieline.overlay.links.links import Link
from tieline.overlay.membership import Membership
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.strategy import Strategy


class Carrier:
    """One broker's part in carrying: an origin (``sender``), a destination (``taker``) and a hop in between."""

    def __init__(  # carrying touches every part of a node
        self,
        broker: int,
        ends: Ends,
        *,
        incarnations: Incarnations,
        links: Mapping[int, Link],
        membership: Membership,
        strategy: Strategy,
        timers: Timers,
        journal: Journal,
        counts: Counts,
        deliver: Deliver,
        send: Callable[[int, Numbered, float], None],
        limits: Limits,
    ) -> None:
        self._broker = broker
        self.incarnations = incarnations
        self._links = links
        self._membership = membership
        self.strategy = strategy
        #: Notices take the shortest path, whatever carries the messages.
        self._shortest = Path(membership, counts)
        self._timers = timers
        self._journal = journal
        self._counts = counts
        self._send = send
        self._limits = limits
        #: Sends a neighbour what an echo for some broker must not overtake; the class in which the echo follows.
        self.go_ahead: Callable[[int, int, float], int] | None = None
        self._parked: deque[Data] = deque()
        self.parked_bytes = 0
        self._parked_timer: Timer | None = None
        self._stale_timer: Timer | None = None
        around = Surroundings(
            broker=broker,
            ends=ends,
            membership=membership,
            incarnations=incarnations,
            timers=timers,
            journal=journal,
            counts=counts,
            limits=limits,
        )
        self.sender = Sender(around, self.forward, self._first_hop, self._under_way)
        self.sender.pace = 1 if strategy.is_single else COPIES_PACE
        self.taker = Taker(around, deliver, self.pass_notice)

    def use(self, strategy: Strategy, now: float) -> None:
        """Choose links in another way from now on; what is under way goes on by it from wherever it is."""
        self.strategy = strategy
        self.sender.pace = 1 if strategy.is_single else COPIES_PACE
        self.view_changed(now)

    # -- a hop

    def arrived(self, item: Numbered, now: float) -> None:
        """Something came over a link."""
        if self._broker in item.path:
            self._counts.looped += 1
        elif isinstance(item, Notice):
            self.pass_notice(item, now)
        elif self._is_admitted(item):
            self.forward(item, now)
        else:
            self._counts.seen_before += 1

    def _is_admitted(self, data: Data) -> bool:
        way = self._way_of(data)
        if data.stage and not way.has_stages:
            # it was sent where its stage ends, and not where it is to go: the way there may lead back
            data.stage, data.path = 0, b""
        return way.admits(data)

    def _way_of(self, data: Data) -> Strategy:
        """By which links a frame is carried: what came to nothing twice goes the shortest way, whatever others do.

        Where neighbours choose by different strategies, what one sends may end blind at another, again and again.
        """
        return self._shortest if data.attempt & SHORTEST else self.strategy

    def _first_hop(self, destination: int, data: Data) -> int:
        return next(iter(self._way_of(data).next_brokers(destination, data.path, data)), 0)

    def _under_way(self, destination: int, lane: int) -> Iterator[Data]:
        """Frames of ours that no neighbour has yet.

        Where copies go several ways, one that waits says nothing of the others.
        """
        if self.strategy.is_single:
            for link in self._links.values():
                for item in link.under_way(level_of(lane)):
                    if not isinstance(item, Data) or item.origin != self._broker or item.lane != lane:
                        continue
                    if destination in item.destinations:
                        yield item

    def _take(self, data: Data, where: int, now: float) -> None:
        self.taker.take(data, where, now)

    def forward(self, data: Data, now: float) -> None:
        """Take what is for us, and send the rest on, a copy for each neighbour that leads to some destinations."""
        copies: dict[int, dict[int, int]] = {}
        blind: dict[int, int] = {}
        way = self._way_of(data)
        for destination, first in data.destinations.items():
            if destination == self._broker:
                self._take(data, first, now)
                continue
            peers = way.next_brokers(destination, data.path, data)
            if not peers:
                blind[destination] = first
            for peer in peers:
                copies.setdefault(peer, {})[destination] = first
        if copies:
            path = data.path + bytes((self._broker,))
            for peer, destinations in copies.items():
                copy = data.to(destinations, path)
                copy.stage = way.stage_of(data, destinations)
                self._send(peer, copy, now)
        if blind:
            self._blind(data, blind, now)

    def _blind(self, data: Data, destinations: dict[int, int], now: float) -> None:
        """No neighbour leads to some destinations."""
        if not is_assured(data.lane):
            self._give_up(data, destinations, now)
        elif data.origin == self._broker:
            # what comes back to its origin on a path that began anew is no copy that anybody waits for
            for destination in () if data.path else destinations:
                self.sender.rewind(destination, data.lane)
        elif not self._way_of(data).is_single:
            self._counts.blind_copies += 1
        else:
            self._counts.parked += 1
            self._parked.append(data.to(destinations, b""))
            self.parked_bytes += self._parked[-1].size
            while len(self._parked) > self._limits.parked or self.parked_bytes > self._limits.parked_bytes:
                self.parked_bytes -= self._parked.popleft().size
                self._counts.parked_full += 1
            if self._parked_timer is None:
                self._parked_timer = self._timers.at(now + self._limits.parked_s, self._retry_parked)

    def _give_up(self, data: Data, destinations: dict[int, int], now: float) -> None:
        """What has QoS 0 is not kept; where only the strategy led nowhere, it begins anew once, on the shortest way.

        Neighbours that choose links in different ways send each other what then has been everywhere it could go.
        """
        if not data.attempt & SHORTEST and not self._way_of(data).is_single:
            self._counts.blind_copies += 1
            return
        reachable = self._membership.reachable
        found = {broker: first for broker, first in destinations.items() if broker in reachable}
        if data.attempt & SHORTEST or not data.path:
            found = {}
        self._counts.no_route += data.count * (len(destinations) - len(found))
        if found:
            self._counts.detours += 1
            again = data.to(found, b"")
            again.attempt = data.attempt | SHORTEST
            self.forward(again, now)

    def _retry_parked(self, now: float) -> None:
        self._timers.cancel(self._parked_timer)
        self._parked_timer = None
        parked, self._parked = self._parked, deque()
        self.parked_bytes = 0
        for data in parked:
            if self._is_stale(data, now):
                self._counts.kept_in_vain += 1
                continue
            # under its old attempt: a flooding hop that has seen it would otherwise copy it again, for ever
            self.forward(data, now)

    def _is_stale(self, data: Data, now: float) -> bool:
        return now - data.born >= self._limits.kept_s

    def _drop_stale(self, now: float) -> None:
        """Nobody comes back: what is kept for a link that stays down is its origin's to send again."""
        self._stale_timer = None
        for link in self._links.values():
            if not link.is_up and len(link):
                self.link_lost(link, now)

    def link_lost(self, link: Link, now: float) -> None:
        """Carry another way what a link has not delivered; what has no other way stays with it."""
        for number, item in link.hand_out():
            if isinstance(item, Notice):
                item.path = b""
                if item.topic is not Topic.RETAINED:  # what is for the neighbour alone it is told anew
                    self.pass_notice(item, now)
                continue
            path = item.path[:-1]
            elsewhere: dict[int, int] = {}
            nowhere: dict[int, int] = {}
            for destination, first in item.destinations.items():
                has_way = bool(self._way_of(item).next_brokers(destination, path, item))
                (elsewhere if has_way else nowhere)[destination] = first
            if elsewhere:
                self._counts.rerouted += 1
                self.forward(item.to(elsewhere, path), now)
            if not nowhere:
                continue
            if not is_assured(item.lane):
                self._counts.no_route += item.count * len(nowhere)
            elif self._is_stale(item, now):
                self._counts.kept_in_vain += 1
            elif len(link) < self._limits.parked and link.kept_bytes < self._limits.parked_bytes:
                link.keep(number, item.to(nowhere, item.path))
                if self._stale_timer is None:
                    self._stale_timer = self._timers.at(now + self._limits.kept_s, self._drop_stale)
            else:
                self._counts.parked_full += 1

    def view_changed(self, now: float) -> None:
        """Links have come or gone somewhere: what waited for a way may have one."""
        for link in self._links.values():
            if not link.is_up and len(link):
                self.link_lost(link, now)
        if self._parked:
            self._retry_parked(now)
        self.sender.view_changed(now)
        self.taker.view_changed(now)

    def pass_notice(self, notice: Notice, now: float) -> None:
        """Send a notice on towards its target; one that has no way is dropped, and what it said is said again."""
        peers = self._shortest.next_brokers(notice.target, notice.path)
        if not peers:
            self._counts.notices_lost += 1
        else:
            path = notice.path + bytes((self._broker,))
            copy = Notice(notice.topic, notice.source, notice.target, notice.body, path)
            if copy.topic is Topic.ECHO and self.go_ahead is not None:
                copy.level = self.go_ahead(peers[0], notice.target, now)
            self._send(peers[0], copy, now)

    # -- incarnations

    def heard(self, broker: int, incarnation: int, life: int) -> bool:
        """Another broker lives; whether it has begun anew and knows nothing, so that streams with it begin anew."""
        known = self.incarnations.known.get(broker)
        if not self.incarnations.heard(broker, incarnation, life):
            return False
        self._journal.note(Renewed(broker, incarnation, life), partial(self._renewal_is_safe, broker))
        self.sender.renew(broker)
        self.taker.renew(broker, None if known is None else known[-1])
        return True

    def _renewal_is_safe(self, broker: int, now: float) -> None:
        if self.incarnations.committed(broker):
            self.sender.pump_all(now, broker)

    # -- for those who ask

    @property
    def parked(self) -> int:
        """Frames that wait here for a way."""
        return len(self._parked)

    @property
    def unfinished(self) -> int:
        """Messages that are owed, held or parked here."""
        return self.sender.unfinished + len(self._parked) + self.taker.unfinished

    def check(self) -> None:
        """What always holds, for tests."""
        self.sender.check()
        self.taker.check()
