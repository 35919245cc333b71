"""The process itself: how late its timers are, how long garbage collection stops it, and which memory it keeps.

Memory of one buffer is kept for the next: otherwise the system clears every page of it anew.  The C library gives large
pieces back as soon as they are free.  The log server needs a few of some megabytes for each batch, and the next one
needs the same; asking for them again took a tenth of its time.  The broker reads a flood in chunks of 256 kB and copies
what is in them: 64 pages for each, which cost more to find and to clear than the messages to route (three quarters of
the time for a stream of 1 kB messages).
"""

from __future__ import annotations

import ctypes
import gc
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tieline.core.timers import Timer, Timers


_PERIOD_S = 1.0


class Vitals:
    """Measures the broker's loop from inside."""

    def __init__(self) -> None:
        #: How late the last one-second timer was.
        self.lag_s = 0.0
        #: The longest collection since the start.
        self.longest_gc_s = 0.0
        #: The sum of all collections.
        self.gc_s = 0.0
        self._gc_began = 0.0
        self._timers: Timers | None = None
        self._timer: Timer | None = None

    def start(self, timers: Timers) -> None:
        """Begin to measure, by a timer and by the hooks of the garbage collector."""
        self._timers = timers
        gc.callbacks.append(self._on_gc)
        self._again(monotonic())

    def stop(self) -> None:
        if self._timers is not None:
            self._timers.cancel(self._timer)
            self._timers = None
            gc.callbacks.remove(self._on_gc)

    def _again(self, now: float) -> None:
        if self._timer is not None:
            self.lag_s = max(0.0, now - self._timer.when)
        if self._timers is not None:
            self._timer = self._timers.at(now + _PERIOD_S, self._again)

    def _on_gc(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = monotonic()
        else:
            paused_s = monotonic() - self._gc_began
            self.gc_s += paused_s
            self.longest_gc_s = max(self.longest_gc_s, paused_s)


#: Parameters of glibc's ``mallopt``, as its ``malloc.h`` numbers them.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
#: glibc takes no more for the size of pieces that it keeps.
LARGEST: Final = 32 << 20


def keep_memory(largest: int, unused: int) -> bool:
    """Have the C library keep memory, for the rest of the process; False where it is not glibc.

    Pieces above ``largest`` bytes go back to the system at once, and so much may lie ``unused`` at the end of a
    thread's memory.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, largest)) and bool(mallopt(_TRIM_THRESHOLD, unused))
