"""What meters can measure that EN 50160 speaks of, and how a window's values become one mean.

A column of readings is known by its name: ``voltage``, or ``voltage_l1`` for one phase.  The same holds for everything
else: ``thd``, ``thd_l2``, ``harmonic_5``, ``harmonic_5_l3``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class Quantity(NamedTuple):
    """One thing that is measured."""

    name: str
    title: str
    #: How long a window is: 4.2 of the standard, and IEC 61000-4-30.
    window_s: int
    #: The mean is the root of this order of the mean of powers: 1 an average, 2 root mean square, 3 as flicker has it.
    power: int
    unit: str
    decimals: int
    has_phases: bool = True


VOLTAGE: Final = "voltage"
FREQUENCY: Final = "frequency"
UNBALANCE: Final = "unbalance"
THD: Final = "thd"
FLICKER: Final = "plt"
SIGNALLING: Final = "signalling"
#: No limits are given beyond the 25th.
ORDERS: Final = range(2, 26)


def harmonic(order: int) -> str:
    """What a harmonic is called."""
    return f"harmonic_{order}"


QUANTITIES: Final[dict[str, Quantity]] = {
    each.name: each
    for each in (
        Quantity(VOLTAGE, "voltage", 600, 2, "V", 2),
        Quantity(FREQUENCY, "frequency", 10, 1, "Hz", 3, has_phases=False),
        Quantity(UNBALANCE, "unbalance", 600, 2, "%", 2, has_phases=False),
        Quantity(THD, "total harmonic distortion", 600, 2, "%", 2),
        *(Quantity(harmonic(order), f"harmonic of order {order}", 600, 2, "%", 2) for order in ORDERS),
        Quantity(FLICKER, "flicker severity Plt", 7_200, 3, "", 2),
        Quantity(SIGNALLING, "mains signalling", 3, 2, "%", 2),
    )
}
PHASES: Final = ("L1", "L2", "L3")


class Series(NamedTuple):
    """Values of one quantity on one phase; the phase is empty where there is only one."""

    quantity: str
    phase: str

    @property
    def column(self) -> str:
        """Its name among the columns of readings."""
        return f"{self.quantity}_{self.phase.lower()}" if self.phase else self.quantity


#: All that could be there, in the order of the standard.
SERIES: Final = tuple(
    Series(each.name, phase) for each in QUANTITIES.values() for phase in ("", *(PHASES if each.has_phases else ()))
)
#: The names of columns beyond voltage and frequency.
FURTHER: Final = tuple(each.column for each in SERIES if each.column not in (VOLTAGE, FREQUENCY))


def series_in(columns: Iterable[str]) -> tuple[Series, ...]:
    """Those that readings with these columns carry."""
    there = set(columns)
    return tuple(each for each in SERIES if each.column in there)
