"""The four levels of urgency, and what is configured for each.

Level 3 is urgent and outranks everything; 0 waits longest.  A message's level comes, in this order, from the extra
header byte, the MQTT 5 user property ``priority``, the first topic rule that matches, the publisher's own level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

LEVELS: Final = 4
URGENT: Final = 3

Full = Literal["oldest", "newest", "coalesce"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """How the messages of one class are treated while they wait."""

    name: str
    level: int
    #: Share of the link that the class gets whatever waits above it, relative to the sum of all weights.
    weight: float = 1.0
    #: When a message should have arrived: the key of the ``edf`` policy.
    deadline_s: float = 1.0
    #: How long a message may wait before it is given a slot of its own.
    timeout_s: float = 10.0
    #: Larger messages of the class are refused; None for no bound of its own.
    max_packet: int | None = None
    #: Who goes when there is no room.
    full: Full = "oldest"


#: What holds for a level that no rule describes.
DEFAULTS: Final = (
    Traffic(name="low", level=0, weight=1.0, deadline_s=10.0, timeout_s=10.0),
    Traffic(name="normal", level=1, weight=2.0, deadline_s=1.0, timeout_s=5.0),
    Traffic(name="important", level=2, weight=4.0, deadline_s=0.1, timeout_s=2.0),
    Traffic(name="urgent", level=3, weight=8.0, deadline_s=0.02, timeout_s=1.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What one subscriber wants for its low classes: the feedback of the first paper.

    Every ``period_s`` each class that has waited too long may send ``frequency`` messages before higher ones.
    """

    period_s: float = 1.0
    frequency: int = 1
    #: Replaces the timeout of every class below urgent; None keeps each class's own.
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Everything a policy needs to know that does not change from message to message."""

    classes: tuple[Traffic, Traffic, Traffic, Traffic] = DEFAULTS
    patience: Patience = field(default_factory=Patience)
    #: Part of the link that all classes below the highest waiting one share, by their weights; at most a half.
    floor: float = 0.1
    #: Predecessors of its own flow that an urgent message takes along.
    inheritance: int = 256

    def __post_init__(self) -> None:
        if [traffic.level for traffic in self.classes] != list(range(LEVELS)):
            raise ValueError("the classes are not those of levels 0, 1, 2, 3 in this order")
        if not 0 <= self.floor <= 0.5:
            raise ValueError(f"a floor of {self.floor} is not between 0 and 0.5")
        if self.inheritance < 0:
            raise ValueError(f"{self.inheritance} predecessors cannot be taken along")
