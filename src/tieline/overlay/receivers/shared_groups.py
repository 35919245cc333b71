"""Groups with members at several brokers: how many each has elsewhere, and how many groups a broker may be in.

A group is a share name and a filter, whatever its members ask for besides.  Their messages are spread by how many
members each broker has.  How many groups one broker may have here is bounded, for each of them may have to be asked
about each message.

So a group of ours beyond that bound would get only what this broker accepts, and nobody would be told.  Whoever asks
for it is refused; and one session cannot take the place of all others.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tieline.core.routing.routes import Routes
from tieline.overlay.counts import Counts
from tieline.overlay.interests.entries import Entry
from tieline.overlay.receivers.destination import Destination

#: Entries of groups that one broker may have on the routes of another.
MOST: Final = 4_096
#: Groups of one session.
MOST_OF_SESSION: Final = 256


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


class OwnGroups:
    """The groups of this broker, by what their members ask for."""

    def __init__(self) -> None:
        self._members: Counter[Entry] = Counter()

    def note(self, entry: Entry, *, is_new: bool) -> None:
        """A client is a member of a group from now on, or no longer."""
        self._members[entry] += 1 if is_new else -1
        if not self._members[entry]:
            del self._members[entry]

    def refusal(self, entry: Entry, of_session: int) -> str | None:
        """Why a client with so many groups cannot be a member of one more; None if it can."""
        if of_session >= MOST_OF_SESSION:
            return f"a session may be a member of {MOST_OF_SESSION} groups, for other brokers have to know of them"
        if len(self._members) >= MOST and entry not in self._members:
            return f"other brokers look at {MOST} groups of this one"
        return None
