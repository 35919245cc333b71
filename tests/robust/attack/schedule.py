"""Which kinds attack together, with how many connections, on which broker, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Hostile connections of each kind of a pair: eight together, and then one each.
OF_A_PAIR: Final = (4, 1)
#: All kinds at once have so much longer than a pair.
LONGER: Final = 3


@dataclass(frozen=True, slots=True)
class Phase:
    """Kinds that attack together."""

    names: tuple[str, ...]
    #: Of each of them.
    connections: int
    #: How long they attack, once all of them are ready.
    seconds: float
    #: The broker has a data directory.
    is_kept: bool

    @property
    def what(self) -> str:
        """For people."""
        names = " + ".join(self.names) if len(self.names) <= 2 else f"all {len(self.names)} kinds at once"
        return f"{names} x{self.connections}" if self.names else "nothing"


def whole_run(names: list[str], seconds: float) -> list[Phase]:
    """All kinds in pairs, then all at once; half of it on a broker without a data directory, then half on one with it.

    Each kind attacks both brokers: where a pair has eight connections on the one, it has two on the other.
    """
    half = (len(names) + 1) // 2
    pairs = [tuple(names[place::half]) for place in range(half)]
    share = seconds / (len(pairs) * 2 + LONGER * 2)
    phases = []
    for is_kept in (False, True):
        for place, pair in enumerate(pairs):
            many, few = OF_A_PAIR
            phases.append(Phase(pair, many if place % 2 == is_kept else few, share, is_kept))
        phases.append(Phase(tuple(names), 1, share * LONGER, is_kept))
    return phases


def chosen(names: list[str], sizes: list[int], seconds: float, *, is_kept: bool) -> list[Phase]:
    """Some kinds, one after the other, alone."""
    share = seconds / (len(names) * len(sizes))
    return [Phase((name,), size, share, is_kept) for name in names for size in sizes]
