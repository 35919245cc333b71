"""How long a search may take: seconds for people, iterations for those who want the same plan again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Budget:
    """Seconds, iterations, or both: whichever is spent first ends the search."""

    seconds: float | None = None
    iterations: int | None = None
    done: int = 0
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        if self.seconds is None and self.iterations is None:
            raise ValueError("a search needs an end: seconds or iterations")

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def spent(self) -> float:
        """The part that is spent, from 0 to 1."""
        by_time = 0.0 if self.seconds is None else self.elapsed / max(self.seconds, 1e-9)
        by_count = 0.0 if self.iterations is None else (self.done / self.iterations if self.iterations else 1.0)
        return min(1.0, max(by_time, by_count))

    def left(self) -> float | None:
        """Seconds that are left; None if only iterations count."""
        return None if self.seconds is None else max(0.0, self.seconds - self.elapsed)
