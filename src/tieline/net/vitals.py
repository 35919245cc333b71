"""How the process itself is doing: loop lag and garbage-collection pauses, once a second."""

from __future__ import annotations

import asyncio
import gc
from time import monotonic

_PERIOD_S = 1.0


class Vitals:
    """Measures the asyncio loop from inside."""

    def __init__(self) -> None:
        #: How late the last one-second timer was.
        self.lag_s = 0.0
        #: The longest collection since the start.
        self.longest_gc_s = 0.0
        self._gc_began = 0.0
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure."""
        gc.callbacks.append(self._on_gc)
        self._again()

    def stop(self) -> None:
        """Measure no more."""
        if self._handle is not None:
            self._handle.cancel()
            gc.callbacks.remove(self._on_gc)
            self._handle = None

    def _again(self) -> None:
        self._due = monotonic() + _PERIOD_S
        self._handle = asyncio.get_running_loop().call_later(_PERIOD_S, self._late)

    def _late(self) -> None:
        self.lag_s = max(0.0, monotonic() - self._due)
        self._again()

    def _on_gc(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = monotonic()
        else:
            self.longest_gc_s = max(self.longest_gc_s, monotonic() - self._gc_began)
