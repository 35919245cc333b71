"""How long an attack goes on: some time after all who attack together have what they need for it."""

from __future__ import annotations

from ctypes import c_double
from time import monotonic


class Bout:
    """One attack's view of the time that all in its phase have.

    The two numbers are shared with the process that conducts the run: it waits until everybody has said that its
    set-up is complete, and only then says when the phase is over.
    """

    __slots__ = ("_until", "_when_set_up")

    def __init__(self, until: c_double, when_set_up: c_double) -> None:
        #: When the phase is over; infinity while somebody still prepares.
        self._until = until
        #: When this attack had what it needs; 0 before.
        self._when_set_up = when_set_up

    def bite(self) -> None:
        """Say that the set-up is complete: what comes now is the attack itself.  Only the first call counts."""
        if not self._when_set_up.value:
            self._when_set_up.value = monotonic()

    def is_over(self) -> bool:
        """Whether to stop, with the set-up as well."""
        return monotonic() >= self._until.value
