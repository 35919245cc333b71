"""How long an attack goes on: some time after all who attack together have what they need for it."""

from __future__ import annotations

from ctypes import c_double
from math import inf
from time import monotonic, sleep
from typing import Final

#: How often it is looked at whether all are ready.
WAIT_S: Final = 0.01


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
        """Say that the set-up is complete, and wait until that of all others is, who would not get on under attack.

        What comes after the first call is the attack itself; any other call does nothing.
        """
        if not self._when_set_up.value:
            self._when_set_up.value = monotonic()
        while self._until.value == inf:
            sleep(WAIT_S)

    def is_over(self) -> bool:
        """Whether to stop, with the set-up as well."""
        return monotonic() >= self._until.value
