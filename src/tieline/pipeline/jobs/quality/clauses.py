"""What EN 50160 asks of a low-voltage supply, as a table: each clause with its number, range and share.

Numbers are those of EN 50160:2010; the texts are ours. The standard has one more figure for interconnected systems:
since 2007 the frequency shall stay within 1 % during 99.5 % of a *year*. Verdicts here are about weeks, so the older
wording, 95 % of a week, is the one that is applied, and the report prints the share so that both can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Quantity = Literal["voltage", "frequency"]
System = Literal["interconnected", "island"]

#: How long a mean is, by quantity: 4.2.1 and 4.2.2 of the standard, and IEC 61000-4-30.
WINDOW_S: Final[dict[Quantity, int]] = {"voltage": 600, "frequency": 10}
SYSTEMS: Final[tuple[System, ...]] = ("interconnected", "island")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One sentence of the standard that a week of means can meet or break."""

    name: str
    number: str
    quantity: Quantity
    systems: tuple[System, ...]
    #: Where the range ends, in percent above the nominal value; below it for negative numbers.
    low_percent: float
    high_percent: float
    #: How many of a thousand means must lie in the range; whole numbers, so that exactly 95 % passes.
    permille: int
    text: str

    @property
    def is_absolute(self) -> bool:
        """No mean at all may lie outside."""
        return self.permille == 1000


CLAUSES: Final = (
    Clause(
        name="voltage-95",
        number="4.2.2",
        quantity="voltage",
        systems=SYSTEMS,
        low_percent=-10,
        high_percent=10,
        permille=950,
        text="In each week, 95 % of the 10-minute means of the rms voltage lie within 10 % of the nominal voltage.",
    ),
    Clause(
        name="voltage-100",
        number="4.2.2",
        quantity="voltage",
        systems=SYSTEMS,
        low_percent=-15,
        high_percent=10,
        permille=1000,
        text="All 10-minute means of the rms voltage lie between 15 % below and 10 % above the nominal voltage.",
    ),
    Clause(
        name="frequency-95",
        number="4.2.1",
        quantity="frequency",
        systems=("interconnected",),
        low_percent=-1,
        high_percent=1,
        permille=950,
        text="With a synchronous connection to an interconnected system, 95 % of a week's 10-second means of the "
        "frequency lie within 1 % of 50 Hz. (Before 2007; since then 99.5 % of a year.)",
    ),
    Clause(
        name="frequency-100",
        number="4.2.1",
        quantity="frequency",
        systems=("interconnected",),
        low_percent=-6,
        high_percent=4,
        permille=1000,
        text="With a synchronous connection, all 10-second means of the frequency lie between 6 % below and 4 % above "
        "50 Hz.",
    ),
    Clause(
        name="frequency-95",
        number="4.2.1",
        quantity="frequency",
        systems=("island",),
        low_percent=-2,
        high_percent=2,
        permille=950,
        text="Without a synchronous connection, 95 % of a week's 10-second means of the frequency lie within 2 % of "
        "50 Hz.",
    ),
    Clause(
        name="frequency-100",
        number="4.2.1",
        quantity="frequency",
        systems=("island",),
        low_percent=-15,
        high_percent=15,
        permille=1000,
        text="Without a synchronous connection, all 10-second means of the frequency lie within 15 % of 50 Hz.",
    ),
)

#: What the standard also covers and readings of voltage and frequency cannot show: number, subject.
NOT_ASSESSED: Final = (
    ("4.2.3.1", "single rapid voltage changes"),
    ("4.2.3.2", "flicker severity"),
    ("4.2.4", "unbalance of the supply voltage"),
    ("4.2.5", "harmonic voltages and total distortion"),
    ("4.2.6", "interharmonic voltages"),
    ("4.2.7", "mains signalling voltages"),
    ("4.3.3", "transient overvoltages"),
)
#: What is counted without a verdict, because the standard gives figures for it but no limits: number, subject.
ONLY_COUNTED: Final = (
    ("4.3.1", "interruptions of the supply"),
    ("4.3.2", "dips and swells of the supply voltage"),
)
