"""A broker that is in two groups: that of its region, and that of the gateways of all regions.

It serves no clients.  A message of its region that others want is one of a stream that ends here, and is owed from here
on to their gateways; what those send is owed to the brokers of this region.  How far the one stream has come and what
is owed in the other is one batch of the store, so a gateway commits before it acknowledges, and a crash leaves each
message on exactly one side.

A message that has entered a region never leaves it: it carries the region where it was published, and only what was
published in this one goes outside.
"""

from __future__ import annotations

from collections.abc import Iterable

from tieline.conf.published import MOST_FILTERS
from tieline.core.broker import Broker
from tieline.core.message import Message
from tieline.overlay.interests.entries import Entries, Entry
from tieline.overlay.interests.substitutes import Substitutes
from tieline.overlay.joined import Joined
from tieline.overlay.receivers.turns import gateway_mark, region_of
from tieline.overlay.regions.bridge import Bridge
from tieline.overlay.regions.outside import Outside

#: Bytes that a gateway says of what all brokers on one side want, and of conditions on one filter that it says exactly;
#: beyond these, wider filters, and cells.
_BYTES, _CONDITION_BYTES = 32_768, 2_048


class Gateway:
    """Both sides of one broker."""

    def __init__(self, core: Broker, inside: Joined, outside: Outside, now: float) -> None:
        assert core.from_brokers.is_gateway, "a core whose settings name no region"
        self._core = core
        self.inside = inside
        self.outside = outside
        self.region = outside.region
        core.journal.before_seal = self._seal if not core.journal.is_volatile else None
        inside.incoming.lacks_room = outside.incoming.lacks_room = self._lacks_room
        timers = core.timers
        self._now = now
        #: What other regions want, as this gateway wants it of its own, and the other way around.
        self.inward = Bridge(outside.node, inside.grants, timers, self._time)
        self.outward = Bridge(inside.node, outside.grants, timers, self._time)
        for side in (inside, outside):
            # what many want is said in few words: those who read it decide, and need not hear of each change of it
            side.node.interests.substitutes = Substitutes(size=_BYTES, condition_size=_CONDITION_BYTES)
        inside.grants.want([(gateway_mark(self.region), True)], now)
        inside.grants.follow(self._inside_learned)
        outside.grants.follow(self._outside_learned)
        inside.grants.on_declared = outside.grants.on_declared = self._declare
        self._declare()

    def _time(self) -> float:
        """What it was when something last came, or a turn ended."""
        return max(self._now, self.inside.now, self.outside.now)

    def _inside_learned(self, number: int, added: Entries, removed: frozenset[Entry]) -> None:
        """A broker of this region wants something else; what a fellow gateway wants others have told this one too."""
        self.inside.remote.learned(number, added, removed)
        if number not in self.inside.turns.regions:
            self.outward.learned(number, added, removed)

    def _outside_learned(self, number: int, added: Entries, removed: frozenset[Entry]) -> None:
        """A gateway of another region wants something else; one of this region speaks for the same brokers."""
        if region_of(self.outside.names[number]) != self.region:
            self.outside.remote.learned(number, added, removed)
            self.inward.learned(number, added, removed)

    def _declare(self) -> None:
        """What may be published on each side, since brokers there have declared it, comes out of the other one."""
        now = self._time()
        inside, outside = self.inside, self.outside
        fellows = {inside.names[number] for number in inside.turns.regions if number in inside.names}
        self.outside.grants.declare(_together(inside.grants.declarations(), fellows), now)
        others = {name for name in outside.names.values() if region_of(name) == self.region}
        self.inside.grants.declare(_together(outside.grants.declarations(), others), now)

    def _lacks_room(self, message: Message) -> bool:
        """Whether so much is owed to somebody who wants a message that it has to wait where it is."""
        sides: Iterable[Joined | Outside] = (self.inside, self.outside)
        if not any(each.is_full for side in sides for each in side.destinations.values()):
            return False
        return self._core.from_brokers.lacks_room(message, self._time())

    def _seal(self) -> None:
        """What one side has taken and what the other owes by that is one batch."""
        self.inside.seal()
        self.outside.seal()

    def end_turn(self, now: float) -> None:
        """Everything that was ready has been handled: what was gathered leaves on either side."""
        self._now = now
        # without a store each side settles at once what it has taken, so the other one has to owe it before
        self.outside.outgoing.flush(now)
        self.inside.end_turn(now)
        self.outside.end_turn(now)


def _together(declarations: dict[str, frozenset[str] | None], but: set[str]) -> frozenset[str] | None:
    """What several brokers have declared, but for some; None if one of them has not, or there are too many filters."""
    filters: set[str] = set()
    declared = [each for name, each in declarations.items() if name not in but]
    for each in declared:
        if each is None:
            return None
        filters |= each
    return frozenset(filters) if declared and len(filters) <= MOST_FILTERS else None
