"""Groups with members at other brokers: how many each has, so that their messages are spread by that.

A group is a share name and a filter, whatever its members ask for besides.  How many groups one broker may have here is
bounded, for each of them may have to be asked about each message.
"""

from __future__ import annotations

from typing import Final

from tieline.core.routing.routes import Routes
from tieline.overlay.counts import Counts
from tieline.overlay.interests.entries import Entry
from tieline.overlay.receivers.destination import Destination

#: Entries of groups that one broker may have on the routes of another.
MOST: Final = 4_096


class RemoteGroups:
    """The members that other brokers have told of."""

    def __init__(self, routes: Routes, counts: Counts, *, is_balanced: bool) -> None:
        self._routes = routes
        self._counts = counts
        self._is_balanced = is_balanced
        #: By destination, group and entry, the members of each.
        self._members: dict[int, dict[tuple[str, str], dict[Entry, int]]] = {}
        self._entries: dict[int, int] = {}

    def admits(self, destination: Destination, entry: Entry) -> bool:
        """Whether one more entry of a broker is looked at; one that is not is counted."""
        if self._entries.get(destination.number, 0) < MOST:
            return True
        self._counts.groups_refused += 1
        return False

    def learned(self, destination: Destination, entry: Entry, members: int) -> None:
        """A broker has so many members of a group, by this entry; its entry is on the routes."""
        groups = self._members.setdefault(destination.number, {})
        entries = groups.setdefault((entry.share, entry.filter), {})
        if entry not in entries:
            self._entries[destination.number] = self._entries.get(destination.number, 0) + 1
        entries[entry] = members
        self._weigh(destination, entry, sum(entries.values()))

    def forgotten(self, destination: Destination, entry: Entry) -> None:
        """A broker has nobody any more by an entry, which is no longer on the routes."""
        groups = self._members[destination.number]
        entries = groups[entry.share, entry.filter]
        del entries[entry]
        self._entries[destination.number] -= 1
        self._weigh(destination, entry, sum(entries.values()))
        if not entries:
            del groups[entry.share, entry.filter]

    def _weigh(self, destination: Destination, entry: Entry, members: int) -> None:
        group = self._routes.group(entry.share, entry.filter)
        if group is not None:
            group.spanning.is_balanced = self._is_balanced
            group.spanning.weigh(destination, members)
