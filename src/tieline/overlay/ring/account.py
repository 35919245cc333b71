"""What is wanted in an arc: by each of its brokers while that is short, and as a sum when it is not.

While an arc has few brokers that want something, whoever hands it over knows who they are and sends to them directly,
so that nobody is visited in vain and nobody has to pass anything on.  Beyond a budget of bytes it is one summary, and
the finger is handed the arc.  An account never becomes short again by itself: only whoever told it can tell anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from tieline.overlay.ring.events import Event
from tieline.overlay.ring.merging import Merging
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.summary import EVERYTHING, NOTHING, Summary

#: What a broker takes beside its summary, about.
_PEER_BYTES: Final = 12


class ArcAccount:
    """Who wants what in an arc; it never changes."""

    __slots__ = ("members", "summary")

    def __init__(self, members: Mapping[Peer, Summary] | None, summary: Summary = NOTHING) -> None:
        #: Every broker of the arc that wants something; None if only the sum is known.
        self.members: Final = members
        #: The sum where members are not told apart.
        self.summary: Final = summary

    def __repr__(self) -> str:
        return f"<ArcAccount {self.summary if self.members is None else dict(self.members)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArcAccount) and self.members == other.members and self.summary == other.summary

    def __hash__(self) -> int:
        return hash((None if self.members is None else frozenset(self.members.items()), self.summary))

    def wants(self, event: Event) -> bool:
        """False only if nobody in the arc wants an event."""
        if self.members is None:
            return self.summary.wants(event)
        return any(summary.wants(event) for summary in self.members.values())

    def covers(self, other: ArcAccount) -> bool:
        """Whether whoever knows this knows of the other one, too."""
        if self.members is None:
            theirs = (other.summary,) if other.members is None else other.members.values()
            return all(map(self.summary.covers, theirs))
        if other.members is None:
            return other.summary.is_empty
        return all(self.members.get(peer, NOTHING).covers(summary) for peer, summary in other.members.items())

    @property
    def is_empty(self) -> bool:
        return self.summary.is_empty and not self.members

    @property
    def size(self) -> int:
        """Bytes of everything in it, about."""
        if self.members is None:
            return self.summary.size
        return sum(_PEER_BYTES + summary.size for summary in self.members.values())

    def among(self, is_inside: Callable[[int], bool]) -> ArcAccount:
        """The same for a part of the arc; a sum cannot be taken apart."""
        if self.members is None or all(is_inside(peer.identifier) for peer in self.members):
            return self
        return ArcAccount({peer: summary for peer, summary in self.members.items() if is_inside(peer.identifier)})


#: Nobody wants anything; and nothing is known, so that everything may be wanted.
NOBODY: Final = ArcAccount({})
ANYBODY: Final = ArcAccount(None, EVERYTHING)


def of_one(peer: Peer, summary: Summary) -> ArcAccount:
    """What one broker wants."""
    return NOBODY if summary.is_empty else ArcAccount({peer: summary})


class Accounting:
    """Makes one account of several, under a budget."""

    def __init__(self, merging: Merging, budget: int) -> None:
        self._merging = merging
        self._budget = budget

    def joined(self, one: ArcAccount, other: ArcAccount) -> ArcAccount:
        """What is wanted in either of two arcs."""
        if one.is_empty or one is other:
            return other
        if other.is_empty:
            return one
        if one.members is None or other.members is None:
            return ArcAccount(None, self._merging.joined(self._sum(one), self._sum(other)))
        members = {**one.members, **other.members}
        for peer in one.members.keys() & other.members.keys():
            members[peer] = self._merging.joined(one.members[peer], other.members[peer])
        found = ArcAccount(members)
        if len(members) > 1 and found.size > self._budget:
            return ArcAccount(None, self._sum(found))
        return found

    def _sum(self, account: ArcAccount) -> Summary:
        if account.members is None:
            return account.summary
        return reduce(self._merging.joined, account.members.values(), NOTHING)
