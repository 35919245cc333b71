"""What a broker tells its writer at the start, on standard input: a command line has no room for many event types."""

from __future__ import annotations

from msgspec import Struct


class Keep(Struct, frozen=True):
    """How much of the log is kept; None for no bound."""

    age_s: float | None = None
    bytes: int | None = None
    #: What named readers have not read is kept up to this.
    hard_bytes: int | None = None
    readers: tuple[str, ...] = ()


class Options(Struct, frozen=True):
    """Where to write, how much to keep, and what is declared about what is written."""

    data: str
    keep: Keep = Keep()
    #: The event types under which messages are captured from now on, as the store keeps them.
    declared: str = ""
