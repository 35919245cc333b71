"""The sentences of EN 50160 for a low-voltage supply that windows can meet or break, by edition and kind of system.

Numbers of clauses are those of the edition of 2010, without its later amendments.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from typing import Final, Literal

from tieline.pipeline.jobs.quality.quantities import (
    FLICKER,
    FREQUENCY,
    ORDERS,
    SIGNALLING,
    THD,
    UNBALANCE,
    VOLTAGE,
    harmonic,
)

System = Literal["interconnected", "island"]
Edition = Literal["2010", "1999"]
Period = Literal["week", "year", "day"]
SYSTEMS: Final[tuple[System, ...]] = ("interconnected", "island")
EDITIONS: Final[tuple[Edition, ...]] = ("2010", "1999")
#: A year is taken as so many weeks on end, because weeks are what is judged.
YEAR_WEEKS: Final = 52


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One sentence of the standard that windows can meet or break."""

    name: str
    number: str
    quantity: str
    #: Where the range ends: for voltage and frequency in percent above the nominal value, else as it is measured.
    low: float
    high: float
    #: How many of a thousand means must lie in the range; whole numbers, so that exactly 95 % passes.
    permille: int
    text: str
    period: Period = "week"
    #: For which systems and editions it is shown.
    systems: tuple[System, ...] = SYSTEMS
    editions: tuple[Edition, ...] = EDITIONS
    #: For which of them it is only a figure: the rule is another one, which stands beside it.
    no_rule_for: tuple[tuple[System, Edition], ...] = ()
    #: Which edition says so.
    edition: str = "EN 50160:2010, as in 1999"

    @property
    def is_absolute(self) -> bool:
        """No mean at all may lie outside."""
        return self.permille == 1000


def _few(name: str, number: str, quantity: str, high: float, text: str) -> Clause:
    """At most 5 % of a week's means above a limit."""
    return Clause(name=name, number=number, quantity=quantity, low=0, high=high, permille=950, text=text)


#: Table 1: percent of the fundamental by order; the even orders from 6 on have 0.5.
HARMONICS: Final[dict[int, float]] = {
    **{order: 0.5 for order in ORDERS if order % 2 == 0},
    2: 2.0,
    4: 1.0,
    3: 5.0,
    9: 1.5,
    15: 0.5,
    21: 0.5,
    5: 6.0,
    7: 5.0,
    11: 3.5,
    13: 3.0,
    17: 2.0,
    19: 1.5,
    23: 1.5,
    25: 1.5,
}

CLAUSES: Final = (
    Clause(
        name="voltage-95", number="4.2.2", quantity=VOLTAGE, low=-10, high=10, permille=950,
        no_rule_for=(("island", "2010"),),
        text="In each week, 95 % of the 10-minute means of the rms voltage lie within 10 % of the nominal voltage. "
        "(For a network that is not interconnected only the next one is a rule.)",
    ),
    Clause(
        name="voltage-100", number="4.2.2", quantity=VOLTAGE, low=-15, high=10, permille=1000,
        text="All 10-minute means of the rms voltage lie between 15 % below and 10 % above the nominal voltage.",
    ),
    Clause(
        name="frequency-95", number="4.2.1", quantity=FREQUENCY, low=-1, high=1, permille=950,
        systems=("interconnected",), no_rule_for=(("interconnected", "2010"),),
        edition="EN 50160:1994 and 1999; no rule any more since 2007",
        text="With a synchronous connection to an interconnected system, 95 % of a week's 10-second means of the "
        "frequency lie within 1 % of 50 Hz.",
    ),
    Clause(
        name="frequency-99.5", number="4.2.1", quantity=FREQUENCY, low=-1, high=1, permille=995, period="year",
        systems=("interconnected",), editions=("2010",), edition="EN 50160:2007 and 2010",
        text="With a synchronous connection, 99.5 % of a year's 10-second means of the frequency lie within 1 % of "
        "50 Hz.",
    ),
    Clause(
        name="frequency-100", number="4.2.1", quantity=FREQUENCY, low=-6, high=4, permille=1000,
        systems=("interconnected",),
        text="With a synchronous connection, all 10-second means of the frequency lie between 6 % below and 4 % above "
        "50 Hz.",
    ),
    Clause(
        name="frequency-95", number="4.2.1", quantity=FREQUENCY, low=-2, high=2, permille=950, systems=("island",),
        text="Without a synchronous connection, 95 % of a week's 10-second means of the frequency lie within 2 % of "
        "50 Hz.",
    ),
    Clause(
        name="frequency-100", number="4.2.1", quantity=FREQUENCY, low=-15, high=15, permille=1000, systems=("island",),
        text="Without a synchronous connection, all 10-second means of the frequency lie within 15 % of 50 Hz.",
    ),
    _few(
        "flicker-95", "4.2.3.2", FLICKER, 1.0,
        "In each week, the long-term flicker severity Plt is at most 1 for 95 % of the time.",
    ),
    _few(
        "unbalance-95", "4.2.4", UNBALANCE, 2.0,
        "In each week, 95 % of the 10-minute means of the negative phase sequence are at most 2 % of the positive one.",
    ),
    _few(
        "thd-95", "4.2.5", THD, 8.0,
        "The total harmonic distortion of the voltage, up to order 40, is at most 8 %; taken for 95 % of the 10-minute "
        "means of a week, as for each harmonic.",
    ),
    *(
        _few(
            f"harmonic-{order}-95", "4.2.5", harmonic(order), percent,
            f"In each week, 95 % of the 10-minute means of the harmonic of order {order} are at most {percent:g} % of "
            "the fundamental.",
        )
        for order, percent in sorted(HARMONICS.items())
    ),
)  # fmt: skip

#: Figure 1, percent of the nominal voltage by frequency in Hz; both of its axes are logarithmic.
_SIGNALS: Final = ((100.0, 9.0), (500.0, 9.0), (1_000.0, 5.0), (10_000.0, 5.0))
SIGNAL_HZ: Final = (_SIGNALS[0][0], _SIGNALS[-1][0])


def signalling(hertz: float) -> Clause:
    """The clause on signals that the network operator sends at one frequency."""
    percent = signal_percent(hertz)
    return Clause(
        name="signalling-99", number="4.2.7", quantity=SIGNALLING, low=0, high=round(percent, 2), permille=990,
        period="day",
        text=f"On each day, 99 % of the 3-second means of the signal voltage at {hertz:g} Hz are at most "
        f"{percent:.3g} % of the nominal voltage.",
    )  # fmt: skip


def signal_percent(hertz: float) -> float:
    """How much voltage a signal may have, by its frequency."""
    for (low, first), (high, second) in pairwise(_SIGNALS):
        if low <= hertz <= high:
            part = log(hertz / low) / log(high / low)
            return exp(log(first) + part * (log(second) - log(first)))
    raise ValueError(f"signals are judged from {SIGNAL_HZ[0]:g} to {SIGNAL_HZ[1]:g} Hz, not at {hertz:g} Hz")


#: What the standard also covers, by the quantity that would show it: number, subject.
SUBJECTS: Final[dict[str, tuple[str, str]]] = {
    FLICKER: ("4.2.3.2", "flicker severity"),
    UNBALANCE: ("4.2.4", "unbalance of the supply voltage"),
    THD: ("4.2.5", "total harmonic distortion"),
    "harmonics": ("4.2.5", "harmonic voltages"),
    SIGNALLING: ("4.2.7", "mains signalling voltages"),
}
#: What is never judged here: number, subject, why not.
NEVER_ASSESSED: Final = (
    ("4.2.6", "interharmonic voltages", "the standard gives no limits yet"),
    ("4.3.3", "transient overvoltages", "they are over before a meter has measured them"),
)
