"""One end of a virtual connection: what a socket would be."""

from __future__ import annotations

from collections.abc import Callable

from tieline.sim.clock import Clock
from tieline.sim.link import IDEAL, Chance, Split, VirtualLink, Way


class Endpoint:
    """Writes into one link and reads from the other."""

    def __init__(self, out: VirtualLink, into: VirtualLink) -> None:
        self.out = out
        self.into = into

    def watch(self, on_ready: Callable[[], None]) -> None:
        """Have something called when there is something to read, the end has come, or there is room to write again."""
        self.into.on_readable = self.out.on_writable = on_ready
        if self.into.is_readable:
            on_ready()

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read, or the end."""
        return self.into.is_readable

    @property
    def is_writable(self) -> bool:
        """Whether there is room for more."""
        return self.out.held < self.out.way.buffer

    @property
    def is_over(self) -> bool:
        """Whether the other end has closed, and everything it wrote was read."""
        return self.into.is_over and not self.into.unread

    @property
    def is_broken(self) -> bool:
        """Whether the connection broke, which is noticed even by those who do not read."""
        return self.into.is_over and self.into.is_broken

    @property
    def held(self) -> int:
        """Bytes written that are not known to have arrived."""
        return self.out.held

    @property
    def round_trip_s(self) -> float:
        """How long the smallest thing takes to the other end and back."""
        return self.out.way.delay_s + self.into.way.delay_s

    def write(self, data: bytes | memoryview) -> int:
        """Write what there is room for, and say how much that was."""
        return self.out.write(data)

    def read(self, most: int) -> bytes:
        """What has arrived, up to so many bytes."""
        return self.into.read(most)

    def finish(self) -> None:
        """Write nothing more, and go on reading."""
        self.out.close()

    def close(self) -> None:
        """Neither write nor read any more; with something unread, that breaks the connection, as it does with TCP."""
        if self.into.unread:
            self.out.break_off()
        else:
            self.out.close()
        self.into.refuse()

    def reset(self) -> None:
        """Break the connection: what has not arrived never will, in both directions.

        The other end hears of it as soon as the line lets it, and until then writes to nobody.
        """
        self.out.break_off()
        self.into.refuse()


def pair(
    clock: Clock, there: Way = IDEAL, back: Way = IDEAL, *, split: Split | None = None, chance: Chance | None = None
) -> tuple[Endpoint, Endpoint]:
    """Both ends of a new connection, which is there at once; ``there`` leads from the first end to the second."""
    out = VirtualLink(clock, there, split=split, chance=chance)
    into = VirtualLink(clock, back, split=split, chance=chance)
    out.back, into.back = into, out
    return Endpoint(out, into), Endpoint(into, out)
