"""The dual in a thread of its own, so that bound and plan improve at the same time.

The loops hold no lock of the interpreter while they run.  What the thread finds is handed over as one value, which the
search takes when it likes.  How far it is at that moment depends on the machine: a search that must be repeatable does
without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event, Thread

from tieline.compiling import is_compiled
from tieline.plan.search.dual import Dual, Insight


def has_threads() -> bool:
    """Whether two threads can work at the same time: two processors, and loops that are compiled."""
    return (os.cpu_count() or 1) > 1 and is_compiled()


class Beside:
    """Steps of a dual, one after the other, until it is told to end or nothing moves any more."""

    def __init__(self, dual: Dual, value: Callable[[], float]) -> None:
        self._dual = dual
        self._value = value
        self._end = Event()
        self._news = dual.insight()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="tieline-plan-dual", daemon=True)
        #: Steps done so far.
        self.steps = 0
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether no more will come."""
        return not self._thread.is_alive()

    def insight(self) -> Insight:
        """What the dual knows by now."""
        if self._failure is not None:
            raise self._failure
        return self._news

    def wait(self, seconds: float) -> None:
        """Give the thread time."""
        self._thread.join(seconds)

    def end(self) -> None:
        """Let the thread end after its present step."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._end.is_set() and not self._dual.is_still:
                self._dual.step(self._value())
                self.steps = self._dual.steps
                self._news = self._dual.insight()
        except Exception as failure:  # noqa: BLE001 - it is raised where somebody asks
            self._failure = failure
