"""What honest clients noticed, a window of time after the other, and whether that is within the limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.robust.attack.honest import Rounds

#: What an honest client may wait, in seconds, in every window.
P99_S: Final = 0.050
WORST_S: Final = 0.250
#: What the process may hold, whatever is done to it with the default limits.
RESIDENT_BYTES: Final = 2_147_483_648


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window, under one attack or several."""

    what: str
    rounds: Rounds
    resident_bytes: int
    #: The window holds long enough for a statement about its slowest hundredth.
    is_whole: bool = True

    @property
    def p50_s(self) -> float:
        return self._quantile(0.5)

    @property
    def p99_s(self) -> float:
        return self._quantile(0.99)

    @property
    def worst_s(self) -> float:
        return max(self.rounds.times, default=0.0)

    def _quantile(self, part: float) -> float:
        times = sorted(self.rounds.times)
        return times[min(len(times) - 1, int(len(times) * part))] if times else 0.0

    @property
    def breaches(self) -> list[str]:
        """The limits that were broken, in words."""
        found = []
        if self.rounds.trouble:
            found.append(self.rounds.trouble)
        if self.rounds.lost:
            found.append(f"{self.rounds.lost} messages of honest clients were lost")
        if not self.rounds.times and not self.rounds.trouble:
            found.append("no honest message came back")
        if self.is_whole and self.p99_s > P99_S:
            found.append(f"p99 {self.p99_s * 1e3:.0f} ms is above {P99_S * 1e3:.0f} ms")
        if self.worst_s > WORST_S:
            found.append(f"the worst of {self.worst_s * 1e3:.0f} ms is above {WORST_S * 1e3:.0f} ms")
        if self.resident_bytes > RESIDENT_BYTES:
            found.append(f"{self.resident_bytes / 1e6:.0f} MB are above {RESIDENT_BYTES / 1e6:.0f} MB")
        return found

    def line(self) -> str:
        """For people."""
        mark = "BROKEN" if self.breaches else "ok" if self.is_whole else "ok (too short for p99)"
        return (
            f"{self.what:<42} {len(self.rounds.times):>6} {self.p50_s * 1e3:>8.1f} {self.p99_s * 1e3:>8.1f}"
            f" {self.worst_s * 1e3:>8.1f} {self.rounds.lost:>5} {self.resident_bytes / 1e6:>8.0f}  {mark}"
        )


HEAD: Final = f"{'attack':<42} {'rounds':>6} {'p50 ms':>8} {'p99 ms':>8} {'worst':>8} {'lost':>5} {'MB':>8}"
