"""What a peer may read and write: everything else is taken out of what crosses the link to it, in both directions.

Theory of operation
-------------------
Rights are filters, and two filters have in common what one filter says, or nothing.  So what a peer asks for is
narrowed to what it may read before it is on our routes: nothing else is ever made for it, and nobody asks per message.
What others have accepted passes here on its way to the peer, so it is looked at once more on the link itself; what the
peer sends is looked at there too.  A parcel that may not pass keeps its number and leaves its place empty, so that
streams go on, and whoever gets the empty place counts it.

A peer with rights is an end: it speaks for itself alone.  Whatever it says of other brokers, or carries for them, is
not heard, so it can neither ask in the name of a broker that does not exist nor draw messages of others to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tieline.match.trees import FilterTree
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data, Notice, Numbered, Topic
from tieline.overlay.frames.parcel import only_allowed
from tieline.overlay.interests.entries import Entry
from tieline.overlay.membership import LinkState

#: Topics of which it is remembered whether they are within a right.
_MEMORY: Final = 4_096
#: Called with a topic and the number of messages that a peer was not allowed to publish, and their level.
Denied = Callable[[bytes, int, int], None]


def common(one: str, other: str) -> str | None:
    """The filter of the names that both of two well-formed filters match; None if there are none."""
    if one[:1] == "$" != other[:1] or other[:1] == "$" != one[:1]:
        # a leading wildcard does not match topics that begin with $ [MQTT-4.7.2-1], and no other level is equal to it
        return None
    ones, others = one.split("/"), other.split("/")
    levels: list[str] = []
    for depth in range(max(len(ones), len(others)) + 1):
        a = ones[depth] if depth < len(ones) else None
        b = others[depth] if depth < len(others) else None
        if a == "#" or b == "#":
            # it stands for whatever the other says from here on, also for nothing
            rest = others[depth:] if a == "#" else ones[depth:]
            return "/".join((*levels, *rest)) or None
        if a is None or b is None:
            return ("/".join(levels) or None) if a is b else None
        if a != b and "+" not in (a, b):
            return None
        levels.append(b if a == "+" else a)
    return None


class Right:
    """Some filters, and the topics that they match."""

    def __init__(self, filters: Iterable[str]) -> None:
        self.filters = tuple(dict.fromkeys(filters))
        self._tree: FilterTree[str] = FilterTree()
        for filter_ in self.filters:
            self._tree.put(filter_, filter_)
        self._verdicts: dict[bytes, bool] = {}

    def has(self, topic: bytes) -> bool:
        """Whether a topic is within it; what is no text is not."""
        verdict = self._verdicts.get(topic)
        if verdict is None:
            try:
                verdict = bool(self._tree.match(topic.decode()))
            except UnicodeDecodeError:
                verdict = False
            if len(self._verdicts) >= _MEMORY:
                self._verdicts.clear()
            self._verdicts[topic] = verdict
        return verdict

    def narrow(self, entry: Entry) -> tuple[Entry, ...]:
        """What is left of an entry: one for each filter that has something in common with it."""
        found = (common(entry.filter, filter_) for filter_ in self.filters)
        return tuple(dict.fromkeys(entry._replace(filter=filter_) for filter_ in found if filter_ is not None))


class May:
    """The rights of one peer, as ``[[peer]] may`` says them: ``read FILTER``, ``write FILTER``, ``all FILTER``."""

    def __init__(self, words: Iterable[str]) -> None:
        rights = [word.split(" ", 1) for word in words]
        self.read = Right(filter_ for what, filter_ in rights if what in {"read", "all"})
        self.write = Right(filter_ for what, filter_ in rights if what in {"write", "all"})


class Fence:
    """What passes the link to one peer that has rights."""

    def __init__(self, peer: int, may: May, counts: Counts, denied: Denied) -> None:
        self._peer = peer
        self._may = may
        self._counts = counts
        self._denied = denied

    @property
    def may(self) -> May:
        """What it may read and write."""
        return self._may

    def leaves(self, item: Numbered) -> Numbered:
        """What is sent of something: the places of what the peer may not read are empty."""
        if isinstance(item, Notice) or not item.payloads:
            return item
        parcels = []
        for parcel in item.payloads:
            kept, removed = only_allowed(parcel, self._may.read.has)
            parcels.append(kept)
            self._counts.withheld += sum(removed.values())
        return _with(item, parcels)

    def comes(self, item: Numbered) -> Numbered | None:
        """What is heard of something; None of what the peer sends in the name of another."""
        speaker = item.source if isinstance(item, Notice) else item.origin
        # who carries nothing for others has no full link on the way
        is_credit = isinstance(item, Notice) and item.topic is Topic.CREDIT
        if speaker != self._peer or is_credit:
            self._counts.not_its_own += 1
            return None
        if isinstance(item, Notice) or not item.payloads:
            return item
        parcels = []
        for parcel in item.payloads:
            kept, removed = only_allowed(parcel, self._may.write.has)
            parcels.append(kept)
            for topic, messages in removed.items():
                self._counts.denied += messages
                self._denied(topic, messages, item.level)
        return _with(item, parcels)

    def states(self, state: LinkState, broker: int) -> LinkState | None:
        """What is believed of a link state: that the peer has a link to this broker, and nothing of anybody else."""
        if state.broker != self._peer:
            return None
        return state._replace(neighbours={other: cost for other, cost in state.neighbours.items() if other == broker})


def _with(item: Data, parcels: list[bytes]) -> Data:
    """The same with other parcels; the places in its streams are the same."""
    if all(kept is parcel for kept, parcel in zip(parcels, item.payloads, strict=True)):
        return item
    copy = item.to(item.destinations, item.path)
    copy.payloads = tuple(parcels)
    return copy
