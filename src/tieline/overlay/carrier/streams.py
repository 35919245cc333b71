"""The two ends of a stream (origin, destination, lane): what was sent of what is owed, and what came early."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import Final

from tieline.overlay.carrier.durable import Owing
from tieline.overlay.counts import Counts

#: How far an origin sends ahead of what its destination has committed, and how far ahead a destination keeps.
WINDOW: Final = 512
#: The bit of an attempt that says that a frame goes the shortest way, whatever others do.
SHORTEST: Final = 1
#: After so many failures it does, until it has gone well for so long.
_IN_VAIN: Final = 2
_FORGIVEN_S: Final = 60.0
#: Bytes of a stream that a destination keeps, and of all streams together; beyond it messages are left to their origin,
#: but for those whose turn it is: else a stream with a hole in front of so much would never go on.
HELD_BYTES: Final = 1 << 22
HELD_BYTES_TOTAL: Final = 1 << 26
#: Messages and bytes that are sent in one frame; a longer message is alone in its frame.
_BATCH, _BATCH_BYTES = 64, 65_536
#: What a frame takes beside its messages, at most.
_FRAME: Final = 64
#: A stream of QoS 0 that is heard for the first time begins at its beginning if that is no further back than this.
_EARLY: Final = 16


def batches(payloads: Iterable[bytes], most: int = _BATCH_BYTES) -> Iterator[tuple[bytes, ...]]:
    """Messages in their order, as many together as one frame should hold."""
    batch: list[bytes] = []
    size = 0
    for payload in payloads:
        if batch and (len(batch) == _BATCH or size + len(payload) > most):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    if batch:
        yield tuple(batch)


class Outgoing:
    """The origin's end of an assured stream: ``settled <= sent <= committed <= last``."""

    __slots__ = (
        "accepted",
        "asked_at",
        "attempt",
        "committed",
        "credit",
        "elsewhere",
        "fills",
        "is_stalled",
        "owing",
        "sent",
        "timeouts",
        "touched_at",
        "vain",
        "vain_at",
    )

    def __init__(self, owing: Owing) -> None:
        self.owing = owing
        #: What is on its way already; after a restart nobody knows, so it is sent again.
        self.sent = owing.settled
        #: What is safe here and may be sent.
        self.committed = owing.last
        #: When the destination last moved on, or sending began.
        self.touched_at = 0.0
        #: When messages that expire were accepted, by number; nobody knows of those of an earlier life.
        self.accepted: dict[int, float] = {}
        #: When a hole was last filled.
        self.asked_at = 0.0
        #: How often holes were filled since the destination last moved on, or links came or went.
        self.fills = 0
        #: How often something was sent again; copies of another attempt are no copies that somebody has seen.
        self.attempt = 0
        #: How often the strategy led nowhere as far as is known, and when it did so last.
        self.vain = 0
        self.vain_at = 0.0
        #: How often it was sent again in vain since the destination last moved on, or links came or went.
        self.timeouts = 0
        #: Bytes that a full link on the way takes of it; None where none is full, as far as is known.
        self.credit: int | None = None
        #: Numbers beyond ``sent`` that are on their way by another link than the full one, where a plan sends them.
        self.elsewhere: set[int] = set()
        #: The destination has no room now, and will say when it has.
        self.is_stalled = False

    @property
    def is_underway(self) -> bool:
        return self.sent > self.owing.settled

    @property
    def is_unsettled(self) -> bool:
        return self.committed > self.owing.settled

    def may_send(self, first: int, count: int) -> bool:
        """Whether some messages are the next, within the window, and there is room for them."""
        is_near = first + count - 1 - self.owing.settled <= WINDOW
        return self.sent == first - 1 and is_near and not self.is_stalled and self.credit is None

    def portions(self) -> Iterator[tuple[bytes, ...]]:
        """What may be sent now, in frames, none of which has much more than what a full link takes."""
        credit = self.credit
        return batches(self.unsent(), _BATCH_BYTES if credit is None else max(0, min(credit, _BATCH_BYTES)))

    def spend(self, payloads: tuple[bytes, ...]) -> bool:
        """Whether a full link on the way takes some messages; as many as that are taken off what it does."""
        if self.credit is None:
            return True
        if self.credit <= 0:
            return False
        self.credit -= sum(map(len, payloads)) + len(payloads) + _FRAME
        return True

    def unsent(self) -> Iterator[bytes]:
        """The messages that are safe, not on their way and within the window."""
        end = self.sent if self.is_stalled else min(self.committed, self.owing.settled + WINDOW)
        return (self.owing.unsettled[number] for number in range(self.sent + 1, end + 1))

    def missing(self, first: int, count: int, here: Container[int]) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Those of some messages that have left and are not settled, in runs with the number of the first.

        The origin itself still has those that are ``here``: nothing has become of them yet.
        """
        sent = range(max(first, self.owing.settled + 1), min(first + count, self.sent + 1))
        for is_here, numbers in groupby(sent, here.__contains__):
            if not is_here:
                run = [*numbers]
                yield run[0], tuple(self.owing.unsettled[number] for number in run)

    @property
    def mark(self) -> int:
        """What frames say of their attempt; what came to nothing twice says that it is to go the shortest way."""
        return self.attempt << 1 | (self.vain >= _IN_VAIN)

    def failed(self, now: float) -> None:
        """Nobody moved on after what was sent: the strategy may be to blame."""
        self.vain += 1
        self.vain_at = now

    def moved_on(self, now: float) -> None:
        """The destination has more of it: a strategy that failed long ago is given another chance."""
        self.touched_at = now
        self.timeouts = self.fills = 0
        if self.elsewhere:
            self.elsewhere = {number for number in self.elsewhere if number > self.owing.settled}
        if self.vain and now - self.vain_at >= _FORGIVEN_S:
            self.vain = 0

    def rewind(self) -> None:
        """Take for unsent whatever is not settled; who said that there was no room may have died since."""
        self.sent = self.owing.settled
        self.elsewhere.clear()
        self.is_stalled = False
        self.credit = None
        self.attempt += 1

    def renew(self, incarnations: tuple[int, ...]) -> None:
        """The destination has begun anew: everything that is not settled is sent to it."""
        self.owing.renew(incarnations)
        self.rewind()

    def check(self) -> None:
        """What always holds, for tests."""
        owing = self.owing
        assert owing.settled <= self.sent <= self.committed <= owing.last, self
        assert list(owing.unsettled) == list(range(owing.settled + 1, owing.last + 1))

    def __repr__(self) -> str:
        return f"<Outgoing {self.owing.settled} <= {self.sent} <= {self.committed} <= {self.owing.last}>"


class HeldBytes:
    """How many bytes wait for their turn in all streams of one destination."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class Incoming:
    """The destination's end of a stream: what came early waits until the numbers before it have come.

    It waits as well while there is no room for what is next (``is_stalled``).
    """

    __slots__ = (
        "_all", "_beyond", "_counts", "_held_bytes", "committed", "held", "hole_since", "is_stalled", "position", "tag",
        "told",
    )  # fmt: skip

    def __init__(self, position: int, counts: Counts, all_: HeldBytes | None = None) -> None:
        self._counts = counts
        self._all = HeldBytes() if all_ is None else all_
        #: Everything up to here has come, or was given up.
        self.position = position
        #: Up to here it is safe.
        self.committed = position
        #: Up to here its origin has been told so.
        self.told = position
        #: By number; None stands for a void.
        self.held: dict[int, bytes | None] = {}
        self._held_bytes = 0
        #: Whoever takes messages had no room for the next one.
        self.is_stalled = False
        #: The last number that came farther ahead than is kept: its origin has given up what stands before it.
        self._beyond = 0
        #: Since when a number is missing that a later one waits for.
        self.hole_since: float | None = None
        #: Of the life of the origin whose numbers these are; used with QoS 0 only.
        self.tag: int | None = None

    def begin(self, tag: int, first: int) -> None:
        """Numbers of QoS 0 are those of a life: they begin anew with the next one."""
        if tag != self.tag:
            self.tag = tag
            self.position = 0 if first <= _EARLY else first - 1
            self.forget_early()

    def add(self, first: int, payloads: tuple[bytes | None, ...], now: float) -> list[bytes]:
        """Take in a batch; the messages whose turn it is now, in their order."""
        counts, held, position = self._counts, self.held, self.position
        expected = position + 1
        for number, payload in enumerate(payloads, first):
            if number <= position or number in held:
                counts.suppressed += payload is not None
            elif number > position + WINDOW or (number > expected and self._is_full):
                counts.beyond_window += 1
                self._beyond = number
                continue
            else:
                held[number] = payload
                self._hold(len(payload or b""))
            if number == expected:
                expected += 1
        ready = [] if self.is_stalled else self._advance()
        if held and first > position + 1:
            counts.resequenced += len(payloads)
        self._mark(now, moved=self.position > position)
        return ready

    def leap(self, first: int, count: int, now: float) -> list[bytes]:
        """Give up so much of what is missing that a batch with QoS 0 can be taken; what can go on now.

        Nobody sends it again: where more was lost than is waited for, the stream would be at its end.
        """
        ready: list[bytes] = []
        while self.held and first + count - 1 > self.position + WINDOW:
            ready += self.skip(now)
        if first + count - 1 > self.position + WINDOW:
            self._counts.skipped += first - 1 - self.position
            self.position = first - 1
        return ready

    def skip(self, now: float) -> list[bytes]:
        """Give up the numbers that are missing before the first that waits; what can go on now."""
        lowest = min(self.held)
        self._counts.skipped += lowest - 1 - self.position
        self.position = lowest - 1
        ready = self._advance()
        self._mark(now, moved=True)
        return ready

    def _advance(self) -> list[bytes]:
        ready = []
        while self.position + 1 in self.held:
            self.position += 1
            payload = self.held.pop(self.position)
            if payload is not None:
                self._hold(-len(payload))
                ready.append(payload)
        return ready

    def forget_early(self) -> None:
        """Give up what waits for its turn: whoever has sent it is no more, or sends it again."""
        self.held.clear()
        self._hold(-self._held_bytes)
        self._beyond = 0
        self.is_stalled = False
        self.hole_since = None

    def put_back(self, untaken: list[bytes]) -> None:
        """There was no room for the last of what was ready: it stays here until somebody tries again."""
        self.is_stalled = True
        self.position -= len(untaken)
        for number, payload in enumerate(untaken, self.position + 1):
            self.held[number] = payload
            self._hold(len(payload))

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        self._all.bytes += size

    @property
    def _is_full(self) -> bool:
        return self._held_bytes > HELD_BYTES or self._all.bytes > HELD_BYTES_TOTAL

    def retry(self, now: float) -> list[bytes]:
        """There may be room now: the messages whose turn it is."""
        self.is_stalled = False
        ready = self._advance()
        self._mark(now, moved=True)
        return ready

    def _mark(self, now: float, *, moved: bool) -> None:
        is_behind = self._beyond > self.position + 1 and not self.is_stalled
        if self.position + 1 in self.held or not (self.held or is_behind):
            self.hole_since = None
        elif self.hole_since is None or moved:
            self.hole_since = now

    def holes(self, most: int) -> list[tuple[int, int]]:
        """The first ranges of numbers that are missing: first and count."""
        found: list[tuple[int, int]] = []
        expected = self.position + 1
        if not self.held and self._beyond > expected:
            return [(expected, min(WINDOW, self._beyond - expected))]
        for number in sorted(self.held):
            if number > expected:
                found.append((expected, number - expected))
                if len(found) == most:
                    break
            expected = number + 1
        return found

    def check(self) -> None:
        """What always holds, for tests."""
        assert all(number > self.position + (not self.is_stalled) for number in self.held), self.held
        assert self._held_bytes == sum(len(payload or b"") for payload in self.held.values())
        assert len(self.held) <= WINDOW
