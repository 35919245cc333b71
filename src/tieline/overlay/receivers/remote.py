"""What other brokers want: subscribed for each of them on the core's own routes, as far as it may read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieline.core.account import Event
from tieline.core.broker import Broker
from tieline.core.inbound.subscribe import WORK_PER_CHARACTER
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.route import ConditionalSubscription
from tieline.match.merge.digest import BadDigest
from tieline.match.where import Asked, ExpressionError, Predicate, parse, spell
from tieline.overlay.counts import Counts
from tieline.overlay.interests.digests import is_digest, read_digest
from tieline.overlay.interests.entries import Entries, Entry
from tieline.overlay.interests.marks import is_mark
from tieline.overlay.interests.meanings import Meanings
from tieline.overlay.may import May
from tieline.overlay.receivers.destination import Collector, Destination
from tieline.overlay.receivers.shared_groups import RemoteGroups
from tieline.overlay.receivers.turns import Turns, is_gateway, region_of
from tieline.wire.packets import Subscription
from tieline.wire.topics import SHARE


class RemoteInterests:
    """Subscriptions of a :class:`~tieline.overlay.receivers.destination.Destination` for each broker with wants."""

    def __init__(  # whom it makes receivers of, and who carries for them
        self,
        core: Broker,
        names: Mapping[int, str],
        destinations: dict[int, Destination],
        collector: Collector,
        counts: Counts,
        turns: Turns,
        *,
        are_outside: bool = False,
    ) -> None:
        """``are_outside`` are gateways of other regions; ``turns`` hears who in this one is a gateway."""
        self._core = core
        self._groups = RemoteGroups(core.routes, counts, is_balanced=core.settings.overlay.groups == "balanced")
        self._names = names
        self._collector = collector
        self._turns = turns
        self._are_outside = are_outside
        #: By which event types conditions are meant here.
        self.meanings: Final = Meanings(core.settings)
        #: By number, every broker that ever wanted something; made here.
        self._destinations = destinations
        #: By broker, what it wants and what of that it may have.
        self._wants: dict[int, dict[Entry, tuple[Entry, ...]]] = {}
        #: By broker, what it may have: for how many of its wants, and how it is subscribed here.
        self._subscribed: dict[int, dict[Entry, tuple[int, str, ActiveSubscription]]] = {}
        #: By broker, its rights, where it has not all.
        self._rights: dict[int, May] = {}

    def learned(self, number: int, added: Entries, removed: frozenset[Entry]) -> None:
        """A broker wants something else than before: it is on the routes before it is echoed."""
        destination = self._destinations.get(number)
        if destination is None:
            destination = self._destinations[number] = Destination(
                number, self._names[number], self._collector, is_outside=self._are_outside
            )
            if self._are_outside:
                self._turns.regions[number] = region_of(self._names[number])
        for mark in filter(is_gateway, added):
            self._turns.regions[number] = mark.share
        wants = self._wants.setdefault(number, {})
        is_fellow = self._core.from_brokers.is_gateway and not self._are_outside and number in self._turns.regions
        rights = self._rights.get(number)
        destination.may_read = None if rights is None else rights.read.has
        for entry, terms in added.items():
            if is_mark(entry) or is_fellow:
                continue  # what one gateway brings into a region does not leave it by another one
            if entry not in wants:
                if entry.share and not self._groups.admits(destination, entry):
                    continue
                wants[entry] = self._allowed(entry, rights)
                self._hold(destination, wants[entry])
            if entry.share:
                self._groups.learned(destination, entry, terms.members)
        if any(is_gateway(entry) for entry in removed):
            self._turns.regions.pop(number, None)
        # a set of both would be no frozenset, which compiled code takes it for
        for entry in [entry for entry in removed if entry in wants]:
            self._release(destination, wants.pop(entry))
            if entry.share:
                self._groups.forgotten(destination, entry)

    def _allowed(self, entry: Entry, rights: May | None) -> tuple[Entry, ...]:
        """What is subscribed for an entry.

        Where only the broker that asks can tell what a condition means, everything with its topics is, and several
        such entries come to the same.  A group stays one, whatever of it a broker may read: that is asked of each
        message.
        """
        if self._predicate(entry) is None:
            entry = entry._replace(condition="", fingerprint=0)
        if rights is None:
            return (entry,)
        narrowed = rights.read.narrow(entry)
        return (entry,) if entry.share and narrowed else narrowed

    def limit(self, rights: Mapping[int, May]) -> None:
        """Let some brokers have nothing else than they may read; all others may read all."""
        self._rights = {**rights}
        for number, wants in self._wants.items():
            destination, may = self._destinations[number], self._rights.get(number)
            destination.may_read = None if may is None else may.read.has
            for entry, had in list(wants.items()):
                wants[entry] = self._allowed(entry, may)
                if wants[entry] != had:
                    self._hold(destination, wants[entry])
                    self._release(destination, had)

    def _hold(self, destination: Destination, entries: tuple[Entry, ...]) -> None:
        """Have a broker on the routes of some entries; several of its wants may come to the same."""
        held = self._subscribed.setdefault(destination.number, {})
        for entry in entries:
            if entry in held:
                times, spelled, subscription = held[entry]
                held[entry] = times + 1, spelled, subscription
            else:
                held[entry] = 1, *self._subscribe(destination, entry)

    def _release(self, destination: Destination, entries: tuple[Entry, ...]) -> None:
        held = self._subscribed[destination.number]
        for entry in entries:
            times, spelled, subscription = held.pop(entry)
            if times > 1:
                held[entry] = times - 1, spelled, subscription
            else:
                self._core.routes.cancel(destination, spelled, subscription)

    def _subscribe(self, destination: Destination, entry: Entry) -> tuple[str, ActiveSubscription]:
        predicate, share = self._predicate(entry), entry.share or None
        spelled = f"{SHARE}{share}/{entry.filter}" if share else entry.filter
        if predicate is not None:
            spelled = spell(Asked(share, entry.filter, entry.condition))
        options = Subscription(filter=spelled, qos=2, retain_as_published=True)
        subscription = ActiveSubscription(options, 0)
        if predicate is not None:
            subscription = ConditionalSubscription(
                options, 0, destination, share, entry.filter, predicate, self._core.references
            )
        self._core.routes.subscribe(destination, share, entry.filter, subscription)
        return spelled, subscription

    def _predicate(self, entry: Entry) -> Predicate | None:
        """The condition of an entry; None without one, or where only the broker that asks can tell what it means."""
        if not entry.condition or entry.fingerprint != self.meanings.fingerprint(entry.filter):
            return None
        self._core.work.did(len(entry.condition) * WORK_PER_CHARACTER)
        try:
            return read_digest(entry.condition) if is_digest(entry.condition) else parse(entry.condition)
        except (BadDigest, ExpressionError) as error:
            text = f"condition: {error}"
            self._core.account.tell(Event("interest_refused", "", "", text, is_trouble=True))
            return None
