"""How a study reads EN 50160: nominal values, kind of system, edition, and when a window or a week counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tieline.pipeline.jobs.quality import clauses as standard
from tieline.pipeline.jobs.quality.clauses import CLAUSES, EDITIONS, SYSTEMS, Clause, Edition, System
from tieline.pipeline.jobs.quality.quantities import FREQUENCY, VOLTAGE

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
    edition: Edition = "2010"
    #: The frequency of the operator's signals, on which their limit depends; None: they are not judged.
    signal_hz: float | None = None
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
        if self.edition not in EDITIONS:
            raise ValueError(f"an edition is {' or '.join(EDITIONS)}, not {self.edition}")
        if self.flagged not in ("exclude", "keep"):
            raise ValueError(f"flagged means are excluded (exclude) or kept (keep), not {self.flagged}")
        if self.every_s is not None and not 0 < self.every_s < 1e6:
            raise ValueError("the seconds between two readings are above zero")
        if self.signal_hz is not None:
            standard.signal_percent(self.signal_hz)
        for name, share in (("samples", self.least_samples), ("coverage", self.least_coverage)):
            if not 0 < share <= 1:
                raise ValueError(f"the least {name} are a share above 0 and up to 1, not {share}")
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone {self.time_zone!r}; names are like Europe/Madrid") from None

    def nominal(self, quantity: str) -> float:
        """The value that percentages are of; for what is a percentage already there is none, which is 100."""
        return {VOLTAGE: self.nominal_v, FREQUENCY: self.nominal_hz}.get(quantity, 100.0)

    def clauses(self, quantity: str | None = None) -> tuple[Clause, ...]:
        """The clauses for this system and edition, of one quantity or of all, with those that are only figures."""
        signals = () if self.signal_hz is None else (standard.signalling(self.signal_hz),)
        return tuple(
            clause
            for clause in (*CLAUSES, *signals)
            if self.system in clause.systems and self.edition in clause.editions and quantity in (None, clause.quantity)
        )

    def is_rule(self, clause: Clause) -> bool:
        """Whether the clause decides, for this system by this edition."""
        return (self.system, self.edition) not in clause.no_rule_for

    def range(self, clause: Clause) -> Range:
        """The values that a clause allows."""
        if clause.quantity not in (VOLTAGE, FREQUENCY):
            return Range(clause.low, clause.high)
        nominal = self.nominal(clause.quantity)
        return Range(
            round(nominal * (1 + clause.low / 100), _DECIMALS), round(nominal * (1 + clause.high / 100), _DECIMALS)
        )

    def normal(self, quantity: str) -> Range:
        """Where values lie most of the time."""
        return self.range(next(clause for clause in self.clauses(quantity) if not clause.is_absolute))

    def extreme(self, quantity: str) -> Range:
        """What values never leave; where the standard says nothing of the kind, the normal range."""
        found = (self.range(clause) for clause in self.clauses(quantity) if clause.is_absolute)
        return next(found, None) or self.normal(quantity)
