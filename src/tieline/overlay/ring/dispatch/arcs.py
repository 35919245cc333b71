"""Ours: a finger is handed its arc, unless nobody in the whole arc wants any of it.

A table entry says what is wanted by everybody in the arc of a finger, so an event visits only arcs that hold somebody
who wants it, and what a sum over many promises in vain.  Where few want anything in an arc they are known by name, and
get their copies directly.  A part whose beginning lies behind its finger comes about where a finger is
dead: the one before it, which stands closest, is handed the dead one's arc too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tieline.overlay.ring.dispatch.protocol import Onward, passed_on
from tieline.overlay.ring.identifiers import AROUND, way
from tieline.overlay.ring.messages import Data, Peer
from tieline.overlay.ring.summary import Summary
from tieline.overlay.ring.table import ArcPart, Finger, Table


def _to_members(data: Data, part: ArcPart, members: Mapping[Peer, Summary]) -> Iterator[tuple[Peer, Data]]:
    """A copy for each broker of an arc that wants something, of which there are few."""
    reach = way(part.start, part.end) or AROUND
    for peer, summary in members.items():
        if way(part.start, peer.identifier) < reach:
            events = tuple(sent for sent in data.events if summary.wants(sent.event))
            if events:
                end = (peer.identifier + 1) % AROUND
                yield peer, passed_on(data, start=peer.identifier, end=end, events=events)


class Arcs:
    """Hands each finger the events that somebody in its arc may want."""

    name: ClassVar[str] = "arcs"
    keeps_promises: ClassVar[bool] = True

    def watched_end(self, table: Table, finger: Finger) -> int:
        return table.end_of(finger)

    def onward(self, table: Table, data: Data, came_from: int) -> Onward:
        copies: list[tuple[Peer, Data]] = []
        for part in table.parts(data.start, data.end):
            members = part.finger.told.members
            if part.is_certain and members is not None:
                copies += _to_members(data, part, members)
                continue
            events = tuple(sent for sent in data.events if part.wants(sent.event))
            if events:
                copy = passed_on(data, start=part.start, end=part.end, events=events)
                copies.append((part.finger.peer, copy))
        return Onward(copies, list(table.gaps(data.start, data.end)))
