"""What readings are judged by: the clauses of EN 50160 for a low-voltage supply, and how a study reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

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


#: What becomes of means during a dip, swell or interruption.
Flagged = Literal["exclude", "keep"]
#: Percentages of round nominal values are meant to be round: 230 V and 10 % are 253 V, not 253.00000000000003 V.
_DECIMALS: Final = 9


class Range(NamedTuple):
    """Values that are allowed, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """One way to read EN 50160; the defaults are those of a public low-voltage network in Europe."""

    nominal_v: float = 230.0
    nominal_hz: float = 50.0
    system: System = "interconnected"
    #: Seconds between two readings of a node; None: each node's own median is taken.
    every_s: float | None = None
    #: Which part of the readings that a window should hold must be there for its mean to count as measured.
    least_samples: float = 0.75
    #: Which part of a week's means must have been judged before the week can pass.
    least_coverage: float = 0.9
    #: Means that touch an incident are left out, as IEC 61000-4-30 has it, or judged like all others.
    flagged: Flagged = "exclude"
    #: Weeks begin on Monday, 00:00, here.
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        if not (0 < self.nominal_v < 1e6 and 0 < self.nominal_hz < 1e3):
            raise ValueError("nominal values are above zero, in volts and hertz")
        if self.system not in SYSTEMS:
            raise ValueError(f"a system is {' or '.join(SYSTEMS)}, not {self.system}")
        if self.flagged not in ("exclude", "keep"):
            raise ValueError(f"flagged means are excluded (exclude) or kept (keep), not {self.flagged}")
        if self.every_s is not None and not 0 < self.every_s < 1e6:
            raise ValueError("the seconds between two readings are above zero")
        for name, share in (("samples", self.least_samples), ("coverage", self.least_coverage)):
            if not 0 < share <= 1:
                raise ValueError(f"the least {name} are a share above 0 and up to 1, not {share}")
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone {self.time_zone!r}; names are like Europe/Madrid") from None

    def nominal(self, quantity: Quantity) -> float:
        """The value that percentages are of."""
        return self.nominal_v if quantity == "voltage" else self.nominal_hz

    def clauses(self, quantity: Quantity | None = None) -> tuple[Clause, ...]:
        """The clauses for this system, of one quantity or of both."""
        return tuple(
            clause for clause in CLAUSES if self.system in clause.systems and quantity in (None, clause.quantity)
        )

    def range(self, clause: Clause) -> Range:
        """The values that a clause allows."""
        nominal = self.nominal(clause.quantity)
        return Range(
            round(nominal * (1 + clause.low_percent / 100), _DECIMALS),
            round(nominal * (1 + clause.high_percent / 100), _DECIMALS),
        )

    def normal(self, quantity: Quantity) -> Range:
        """Where values lie most of the time."""
        return self.range(next(clause for clause in self.clauses(quantity) if not clause.is_absolute))

    def extreme(self, quantity: Quantity) -> Range:
        """What values never leave."""
        return self.range(next(clause for clause in self.clauses(quantity) if clause.is_absolute))
