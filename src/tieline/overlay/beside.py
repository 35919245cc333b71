"""What travels beside the carrier, from neighbour to neighbour: a protocol, so that a node need not know what it is."""

from __future__ import annotations

from typing import Protocol

from tieline.overlay.frame import Notice


class Beside(Protocol):
    """Who has something to tell to neighbours whose links are up."""

    def up(self, peer: int, now: float) -> None:
        """The link to a peer is up."""

    def down(self, peer: int) -> None:
        """The link to a peer is down."""

    def heard(self, notice: Notice, now: float) -> None:
        """A peer tells something; raises :class:`tieline.overlay.fields.BadFrame`."""

    def beat(self, peer: int, clock: int, now: float) -> None:
        """A peer says what its clock shows."""


class NothingBeside:
    """Nothing is told."""

    def up(self, peer: int, now: float) -> None:
        """It hears nothing."""

    def down(self, peer: int) -> None:
        """It has heard nothing."""

    def heard(self, notice: Notice, now: float) -> None:
        """Nobody listens."""

    def beat(self, peer: int, clock: int, now: float) -> None:
        """Nobody has a clock."""
