"""To what the numbers of streams belong: an incarnation is a store, or a start of a broker that has none.

Theory of operation
-------------------
Whoever begins without a store knows nothing of the streams that it was an end of, and says so by an incarnation that
nobody has heard of.  Whoever hears of it lets its own streams to that broker begin with 1 again, with what is not
settled, and expects the other's to begin with 1.  A frame names the incarnations of both ends by tags, so that what was
sent before is not taken for what is sent since.

Of two incarnations the one with the later life counts.  A clock that was set back can make that wrong for a while,
until the broker hears of it and goes on in a later life; so everybody remembers the last few incarnations, and numbers
go on where they were if one of them comes back.
"""

from __future__ import annotations

from tieline.overlay.carrier.durable import Ends, add_incarnation
from tieline.overlay.frames.frame import tag_of


class Incarnations:
    """Which incarnation of each broker counts."""

    __slots__ = ("known", "life_tag", "life_tags", "tag", "tags", "unsafe")

    def __init__(self, incarnation: int, life: int, ends: Ends) -> None:
        #: Our own tags: that of assured streams, and that of the others.
        self.tag = tag_of(incarnation)
        self.life_tag = tag_of(life)
        #: By broker, the incarnations that it has had; the last one counts.
        self.known = dict(ends.incarnations)
        #: By broker, the tag of that, and the one of its life.
        self.tags = {broker: tag_of(known[-1]) for broker, known in ends.incarnations.items()}
        self.life_tags: dict[int, int] = {}
        #: By broker, how many of its renewals are not committed here: numbers that might be forgotten must not be used.
        self.unsafe: dict[int, int] = {}

    def outlive(self, life: int) -> None:
        """Go on in a later life: the numbers of QoS 0 belong to that."""
        self.life_tag = tag_of(life)

    def heard(self, broker: int, incarnation: int, life: int) -> bool:
        """A broker lives; whether it has begun anew, which is then to be committed."""
        self.life_tags[broker] = tag_of(life)
        known = self.known.get(broker, ())
        if known[-1:] == (incarnation,):
            return False
        self.known[broker] = add_incarnation(known, incarnation)
        self.tags[broker] = tag_of(incarnation)
        self.unsafe[broker] = self.unsafe.get(broker, 0) + 1
        return True

    def committed(self, broker: int) -> bool:
        """A renewal is safe; whether it was the last of that broker."""
        self.unsafe[broker] -= 1
        if self.unsafe[broker]:
            return False
        del self.unsafe[broker]
        return True

    def is_known(self, broker: int) -> bool:
        """Whether a broker has ever been heard of."""
        return broker in self.known

    def is_usable(self, broker: int) -> bool:
        """Whether it is known, and safe, which incarnation of a broker counts."""
        return broker in self.tags and broker not in self.unsafe

    def last(self, broker: int) -> int:
        """The incarnation of a broker that counts."""
        return self.known[broker][-1]
