"""What travels beside the carrier, from neighbour to neighbour: a protocol, so that a node need not know what it is."""

from __future__ import annotations

from typing import Protocol

from tieline.overlay.frames.frame import Notice


class NeighbourService(Protocol):
    """Who has something to tell to neighbours whose links are up."""

    def up(self, peer: int, now: float) -> None:
        """The link to a peer is up."""

    def down(self, peer: int) -> None:
        """The link to a peer is down."""

    def heard(self, notice: Notice, now: float) -> None:
        """A peer tells something; raises :class:`tieline.overlay.frames.fields.BadFrame`."""

    def beat(self, peer: int, clock: int, now: float) -> None:
        """A peer says what its clock shows."""


class Rounds(Protocol):
    """Who agrees with neighbours on a plan."""

    def heard(self, notice: Notice, now: float) -> None:
        """A peer says something about it; raises :class:`tieline.overlay.frames.fields.BadFrame`."""

    def down(self, peer: int, now: float) -> None:
        """The link to a peer is down."""


class NoRounds:
    """Stands where nobody agrees on anything."""

    def heard(self, notice: Notice, now: float) -> None:
        """Nobody listens to it."""

    def down(self, peer: int, now: float) -> None:
        """Nothing was begun with it that would have to end."""


class NoNeighbourService:
    """Stands where nothing is told to neighbours."""

    def up(self, peer: int, now: float) -> None:
        """Nobody wants to tell it anything."""

    def down(self, peer: int) -> None:
        """Nobody has told it anything."""

    def heard(self, notice: Notice, now: float) -> None:
        """Nobody listens to what peers tell."""

    def beat(self, peer: int, clock: int, now: float) -> None:
        """Nobody goes by the clocks of peers."""
