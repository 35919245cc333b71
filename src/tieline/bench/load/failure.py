"""Why a measurement came to nothing, in words fit for the report."""

from __future__ import annotations


class Failure(Exception):
    """A peer did not do the work; the text says what happened."""


class Refused(Failure):
    """A connection or subscription was turned down."""


class Lost(Failure):
    """Fewer messages arrived than were sent, and nothing more is coming."""


class Stalled(Failure):
    """The broker stopped making progress."""


class Garbled(Failure):
    """What arrived is not what was sent."""
