"""How much one client may cause before the others get their turn.

Work is counted in units of about a hundred nanoseconds: nodes of a tree visited, receivers, filters, conditions.
Whoever does something that grows with what clients have sent says so here; whoever goes through the packets of one
connection stops when enough was done since it began, and goes on after the others.
"""

from __future__ import annotations

#: Units that one connection may cause in one turn.
WORK_PER_TURN = 20_000


class Work:
    """All work of one broker, ever growing."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0

    def did(self, units: int) -> None:
        """Add what was done; whoever goes through packets sees when it is enough."""
        self.done += units

    def enough(self) -> int:
        """What :attr:`done` may grow to in the turn that begins now."""
        return self.done + WORK_PER_TURN
