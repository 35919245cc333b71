"""What honest clients noticed of a phase, in a line; and of the whole run, in every ten seconds of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.robust.attack.honest import Rounds
from tests.robust.attack.windows import P99_S, WORST_S, Breach, Windows, quantile

#: What the process may hold, whatever is done to it with the default limits.
RESIDENT_BYTES: Final = 2_147_483_648

HEAD: Final = (
    f"{'attack':<56} {'set-up s':>8} {'rounds':>6} {'p50 ms':>7} {'p99 ms':>7} {'worst':>7} {'lost':>4} {'MB':>6}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One phase, from the end of the one before to its own: the set-up, the attack, and its end."""

    what: str
    begin: float
    end: float
    set_up_s: float
    rounds: Rounds
    #: The most that the process held.
    resident_bytes: int
    #: The slowest hundredth of the worst ten seconds that ended here; None if none did.
    p99_s: float | None
    #: Kinds that could not be set up, or the like: then the phase says nothing.
    trouble: tuple[str, ...] = ()

    @property
    def breaches(self) -> list[str]:
        """What was broken, in words; how long anybody waited is a question to :class:`Windows`."""
        found = list(self.trouble)
        if self.rounds.trouble:
            found.append(self.rounds.trouble)
        if self.rounds.lost:
            found.append(f"{self.rounds.lost} messages of honest clients were lost")
        if not self.rounds.times and not self.rounds.trouble:
            found.append("no honest message came back")
        if self.resident_bytes > RESIDENT_BYTES:
            found.append(f"{self.resident_bytes / 1e6:.0f} MB are above {RESIDENT_BYTES / 1e6:.0f} MB")
        return found

    def line(self) -> str:
        """For people."""
        times = sorted(took for _, took in self.rounds.times)
        worst_s = times[-1] if times else 0.0
        is_slow = worst_s > WORST_S or (self.p99_s is not None and self.p99_s > P99_S)
        p99 = "-" if self.p99_s is None else f"{self.p99_s * 1e3:.1f}"
        return (
            f"{self.what:<56} {self.set_up_s:>8.1f} {len(times):>6} {quantile(times, 0.5) * 1e3:>7.1f} {p99:>7}"
            f" {worst_s * 1e3:>7.1f} {self.rounds.lost:>4} {self.resident_bytes / 1e6:>6.0f}"
            f"  {'BROKEN' if self.breaches or is_slow else 'ok'}"
        )


@dataclass(slots=True)
class Run:
    """All phases on one broker."""

    periods: list[Period] = field(default_factory=list)
    windows: Windows = field(default_factory=Windows)

    def broken(self) -> list[str]:
        """Every limit that was broken, in words."""
        found = [f"{period.what}: {text}" for period in self.periods for text in period.breaches]
        start = self.periods[0].begin if self.periods else 0.0
        return found + [each.line(start, self._during(each)) for each in self.windows.breaches]

    def _during(self, breach: Breach) -> str:
        """The phases in which somebody waited too long."""
        names = [each.what for each in self.periods if each.begin <= breach.end and breach.begin <= each.end]
        return ", ".join(names) or "before the first phase"

    def summary(self) -> str:
        """What all windows were like."""
        windows = self.windows
        rounds = sum(len(period.rounds.times) for period in self.periods)
        return (
            f"{rounds} rounds, {windows.judged} windows of ten seconds:"
            f" p99 at most {windows.p99_s * 1e3:.1f} ms, worst {windows.worst_s * 1e3:.1f} ms"
        )
