"""Plans that are installed at a broker: taken in piece by piece, kept across restarts, and in force one at a time.

A piece is one document: ways that lead through this broker, topics that are published at it, and how much each of its
links is given.  What a plan consists of is noted in the broker's store, piece by piece, so that a broker that starts
again goes by the plan that it went by; one without a store forgets it, and goes the shortest ways until it is given the
plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from tieline.overlay.carrier.sender import PlanOf
from tieline.overlay.frames.fields import Reader, put
from tieline.overlay.frames.hello import LONGEST_NAME, Refused
from tieline.overlay.strategies.plan_tables import Own, PlanEntry, PlanTable, PlanTables

#: Pieces of one plan.
MOST_PIECES: Final = 256
_EPOCHS: Final = 1 << 53
#: The kind of the notes: of the epoch in force, and behind an epoch and a number of a piece.
_NOTE: Final = b"G"

#: A direction of a link gets at least this share of its capacity: acknowledgements, questions and what no plan has
#: cross as well.  Where a tenth was left against a full direction, questions took seconds.
LEAST_SHARE: Final = 0.25
#: What a link is given for each planned byte: acknowledgements and notices cross beside it, and traffic is uneven.
SLACK: Final = 1.1

#: Bytes that a message takes on a thin link beside its packet: the head of its frame, and that of a TCP segment.
FRAMED: Final = 90

_Number = Annotated[int, Meta(ge=1, lt=_EPOCHS)]
_Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]


class PlanError(ValueError):
    """Why a plan cannot be taken in or put in force; the text is a sentence without its full stop."""


class PlanPiece(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of what one broker has to know of one plan."""

    epoch: _Number
    #: Pieces come one after the other, from 0.
    number: Annotated[int, Meta(ge=0, lt=MOST_PIECES)] = 0
    #: Another one follows.
    more: bool = False
    #: What people call the plan.
    name: Annotated[str, Meta(max_length=200)] = ""
    #: Origin, number of the topic there, destination, and the neighbour that leads there.
    ways: tuple[tuple[_Name, _Number, _Name, _Name], ...] = ()
    #: Number, name and perhaps publisher of topics that are published at this broker.
    topics: tuple[tuple[_Number, Annotated[str, Meta(max_length=65_535)], str | None], ...] = ()
    #: By neighbour, the bytes in a second that the link to it is given.
    paces: dict[_Name, Annotated[float, Meta(gt=0)]] = {}


class Plans:
    """The plans of one broker."""

    def __init__(
        self,
        number_of: Callable[[str], int],
        follow: Callable[[PlanOf | None], None],
        keep: Callable[[bytes, bytes | None], None],
        notes: Iterable[tuple[bytes, bytes]],
    ) -> None:
        """``follow`` is told by which plan each parcel of this broker leaves from now on, or that there is none;
        ``keep`` writes a note down, and ``notes`` are what an earlier life has left.
        """
        self._number_of = number_of
        self._follow = follow
        self._keep = keep
        self.tables = PlanTables()
        #: By epoch; the last one may not be complete.
        self._pieces: dict[int, list[PlanPiece]] = {}
        self._restore(notes)

    @staticmethod
    def part(notes: Iterable[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
        """What was noted of plans, and everything else."""
        ours: list[tuple[bytes, bytes]] = []
        others: list[tuple[bytes, bytes]] = []
        for note in notes:
            (ours if note[0][:1] == _NOTE else others).append(note)
        return ours, others

    def _restore(self, notes: Iterable[tuple[bytes, bytes]]) -> None:
        epoch = 0
        for key, value in sorted(notes):
            if len(key) == 1:
                epoch = Reader(value).integer()
                continue
            try:
                piece = msgspec.json.decode(value, type=PlanPiece)
            except msgspec.DecodeError:
                continue  # of another version: what is left of that plan is not complete
            self._pieces.setdefault(piece.epoch, []).append(piece)
        for known in list(self._pieces):
            try:
                is_complete = self._install(known)
            except PlanError:
                is_complete = False
            if not is_complete:
                self._forget(known)
        self._go(epoch if epoch in self._pieces else 0)

    def put(self, piece: PlanPiece) -> bool:
        """Take in the next piece of a plan, or the last one again; whether the plan is complete.  Raises PlanError."""
        known = self._pieces.get(piece.epoch, [])
        if piece.number == 0 and piece.epoch in self._pieces and piece.epoch not in self.tables.tables:
            self._forget(piece.epoch)
            known = []
        if piece.number != len(known) and known[-1:] != [piece]:
            raise PlanError(f"piece {piece.number} of plan {piece.epoch} was not expected, but piece {len(known)}")
        if known[-1:] != [piece]:
            if known and not known[-1].more:
                raise PlanError(f"plan {piece.epoch} is complete here, and another piece of it has come")
            for unfinished in [epoch for epoch in self._pieces if epoch not in self.tables.tables]:
                if unfinished != piece.epoch:
                    self._forget(unfinished)
            self._pieces[piece.epoch] = [*known, piece]
            self._keep(_key(piece.epoch, piece.number), msgspec.json.encode(piece))
        return not piece.more and self._install(piece.epoch)

    def _install(self, epoch: int) -> bool:
        """Make a table of all pieces; False while some are missing."""
        pieces = self._pieces[epoch]
        if pieces[-1].more or [piece.number for piece in pieces] != list(range(len(pieces))):
            return False
        number_of = self._number_of
        try:
            entries = [
                PlanEntry(number_of(origin), topic, number_of(destination), number_of(neighbour))
                for piece in pieces
                for origin, topic, destination, neighbour in piece.ways
            ]
        except Refused as problem:
            raise PlanError(str(problem)) from None
        own = [Own(topic, name.encode(), publisher) for piece in pieces for topic, name, publisher in piece.topics]
        self.tables.install(PlanTable(epoch, entries, own))
        for gone in [known for known in self._pieces if known not in self.tables.tables and known < epoch]:
            self._forget(gone)
        return True

    def use(self, epoch: int) -> None:
        """Let what is published here travel by a plan from now on, or by none (0); raises PlanError."""
        if not self._go(epoch):
            raise PlanError(f"plan {epoch} is not complete here")
        self._keep(_NOTE, put(epoch))

    def _go(self, epoch: int) -> bool:
        if not self.tables.use(epoch):
            return False
        self._follow(self.tables.of_parcel if epoch else None)
        return True

    def _forget(self, epoch: int) -> None:
        for piece in self._pieces.pop(epoch):
            self._keep(_key(epoch, piece.number), None)

    # -- for those who ask

    @property
    def name(self) -> str:
        """What people call the plan in force; empty without one."""
        return next((piece.name for piece in self._pieces.get(self.tables.epoch, ())), "")

    def piece(self, epoch: int, number: int) -> PlanPiece:
        """A piece of a plan as it was taken in; raises PlanError."""
        pieces = self._pieces.get(epoch, [])
        if number >= len(pieces):
            raise PlanError(f"there is no piece {number} of plan {epoch} here")
        return pieces[number]

    def pace(self, peer: str) -> float | None:
        """The bytes in a second that the plan in force gives the link to a peer; None if it says nothing."""
        found = [piece.paces[peer] for piece in self._pieces.get(self.tables.epoch, ()) if peer in piece.paces]
        return found[-1] if found else None

    @property
    def paces(self) -> dict[str, float]:
        """The same of all links of which it says something."""
        return {peer: pace for piece in self._pieces.get(self.tables.epoch, ()) for peer, pace in piece.paces.items()}


def pace(planned: float, other: float, capacity: float) -> float:
    """What a direction of a link is given: whatever is not planned for the other one.

    Both together may be more than the link carries: most links carry both directions in full, and what no plan has must
    not wait for room that nobody takes.
    """
    return max(SLACK * planned, capacity - SLACK * other, LEAST_SHARE * capacity)


def _key(epoch: int, number: int) -> bytes:
    return _NOTE + epoch.to_bytes(8, "big") + number.to_bytes(2, "big")
