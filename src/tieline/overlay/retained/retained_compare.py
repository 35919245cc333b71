"""How two neighbours find out of which retained messages they know different writes, with no more than what differs.

One of both says a digest of all that both may know.  If it is not the other's, that answers with the digests of its
buckets, and is sent lists of the topics with their versions in each bucket that differs; it asks for what it does not
know, and tells what is newer here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from functools import partial
from typing import Final

from tieline.core.timers import Timers
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.retained.partner import Partner
from tieline.overlay.retained.retained_item import MOST_MARKS, ItemsWriter, read_marks
from tieline.overlay.retained.versions import BUCKETS, MODULUS, Versions, broker_in, clock_in, mark_of

#: Lists that may be under way, and topics in a bucket beyond which it is sent whole: it is looked through in one go.
_LISTS, _LONG_BUCKET = 4, 4_096
#: Topics of which digests are made in one go, and how long one of them counts before the next comparison: a tenth of a
#: processor for whoever has many.
_PORTION, _PACE_S = 1_000, 1e-5
#: What a topic that is looked at counts towards the work of a turn.
_WORK_PER_MARK: Final = 25
#: A digest of everything, so that it is an integer of the link protocol.
_ROOTS: Final = 1 << 63


class Kind(IntEnum):
    """What a frame says."""

    BEGIN = 1
    ROOT = 2
    BUCKETS = 3
    LIST = 4
    WANT = 5
    VERSIONS = 6
    ASK = 7
    ITEMS = 8
    GOT = 9


class Comparing:
    """The comparisons of one broker with its neighbours."""

    def __init__(
        self,
        versions: Versions,
        timers: Timers,
        counts: Counts,
        tell: Callable[[Partner, Kind, bytes, float], None],
        pump: Callable[[Partner, float], None],
        did: Callable[[int], None],
    ) -> None:
        self._versions = versions
        self._timers = timers
        self._counts = counts
        self._tell = tell
        #: Tells a neighbour what it is found not to know.
        self._pump = pump
        #: Counts what is done towards the work of a turn.
        self._did = did

    def begin(self, partner: Partner, now: float) -> None:
        """Say what both may know, when its digest is made."""
        self._digest(partner, now, partial(self._say_root, partner))

    def _say_root(self, partner: Partner, now: float) -> None:
        assert partner.digests is not None
        self._tell(partner, Kind.ROOT, put(sum(partner.digests) % _ROOTS), now)

    def _digest(self, partner: Partner, now: float, then: Callable[[float], None]) -> None:
        if partner.is_digesting:
            return
        partner.is_digesting = True
        steps = self._digesting(partner)
        self._go_on(partner, steps, then, now)

    def _go_on(
        self, partner: Partner, steps: Generator[None, None, int], then: Callable[[float], None], now: float
    ) -> None:
        if partner.is_gone:
            return
        try:
            next(steps)
        except StopIteration as done:
            partner.is_digesting = False
            partner.compare_at = now + int(done.value) * _PACE_S
            then(now)
        else:
            self._timers.soon(partial(self._go_on, partner, steps, then))

    def _digesting(self, partner: Partner) -> Generator[None, None, int]:
        """Make the digests of all buckets, with pauses; how many topics that took."""
        versions = self._versions
        digests: list[int] = []
        made = total = 0
        for number in range(BUCKETS):
            bucket = versions.buckets[number]
            if partner.is_plain and (versions.is_digested(number) or len(bucket) <= _PORTION):
                made += 0 if versions.is_digested(number) else len(bucket)
                digests.append(versions.digest(number))
            else:
                # piece by piece: what changes meanwhile makes a difference, and is compared once more
                entries, changes, digest = list(bucket.items()), versions.changes[number], 0
                for at in range(0, len(entries), _PORTION):
                    piece = entries[at : at + _PORTION]
                    digest = (digest + versions.digest_of(partner.select(piece))) % MODULUS
                    made += len(piece)
                    if made >= _PORTION:
                        total, made = total + made, 0
                        yield
                digests.append(digest)
                if partner.is_plain:
                    versions.remember(number, digest, changes)
            if made >= _PORTION:
                total, made = total + made, 0
                yield
        partner.digests = digests
        return total + made

    def on_root(self, partner: Partner, reader: Reader, now: float) -> None:
        if now >= partner.compare_at:
            self._digest(partner, now, partial(self._compare_root, partner, reader.integer()))

    def _compare_root(self, partner: Partner, root: int, now: float) -> None:
        digests = partner.digests
        assert digests is not None
        if sum(digests) % _ROOTS == root:
            return
        self._counts.retained_compared += 1
        partner.lists_left = BUCKETS
        body = bytearray()
        for number, digest in enumerate(digests):
            if digest:
                body += put(number) + digest.to_bytes(8, "big")
        self._tell(partner, Kind.BUCKETS, bytes(body), now)

    def on_buckets(self, partner: Partner, reader: Reader, now: float) -> None:
        ours = partner.digests
        if ours is None:
            return
        partner.digests = None
        self._did(BUCKETS * _WORK_PER_MARK // 8)
        theirs: dict[int, int] = {}
        while not reader.is_over:
            number = reader.integer()
            if number >= BUCKETS:
                raise BadFrame(f"bucket {number}")
            if number in theirs:
                raise BadFrame(f"bucket {number} twice")
            theirs[number] = int.from_bytes(reader.take(8), "big")
        partner.differing.clear()
        for number in range(BUCKETS):
            other = theirs.get(number, 0)
            if other == ours[number]:
                continue
            if other:
                partner.differing.append(number)
            else:
                partner.buckets.append(number)
        self._list_more(partner, now)
        self._pump(partner, now)

    def _list_more(self, partner: Partner, now: float) -> None:
        versions, names = self._versions, self._versions.names
        while partner.differing and partner.listing < _LISTS:
            number = partner.differing.popleft()
            bucket = versions.buckets[number]
            marks = ItemsWriter()
            is_listed = len(bucket) <= _LONG_BUCKET
            if is_listed:
                self._did(len(bucket) * _WORK_PER_MARK)
                for topic, version in partner.select(bucket.items()):
                    marks.add_mark(mark_of(topic), clock_in(version), names[broker_in(version)])
            else:
                partner.buckets.append(number)
            partner.listing += 1
            partner.touched_at = now
            self._tell(partner, Kind.LIST, put(number, is_listed) + marks.done(), now)

    def on_list(self, partner: Partner, reader: Reader, now: float) -> None:
        number, is_listed = reader.integer(), reader.integer()
        if number >= BUCKETS or not partner.lists_left:
            raise BadFrame(f"a list of bucket {number} that nobody waits for")
        partner.lists_left -= 1
        listed = read_marks(reader)
        self._did((len(listed) + min(len(self._versions.buckets[number]), _LONG_BUCKET)) * _WORK_PER_MARK)
        missing: list[bytes] = []
        bucket = self._versions.buckets[number]
        if not is_listed or len(bucket) > _LONG_BUCKET:
            partner.buckets.append(number)
            missing += (mark.to_bytes(8, "big") for mark in listed)
        else:
            names = self._versions.names
            for topic, version in partner.select(bucket.items()):
                clock, name = listed.pop(mark_of(topic), (0, ""))
                ours = clock_in(version), names[broker_in(version)]
                if (clock, name) < ours:
                    partner.wanted[topic] = None
                elif (clock, name) > ours:
                    missing.append(mark_of(topic).to_bytes(8, "big"))
            missing += (mark.to_bytes(8, "big") for mark in listed)
        self._tell(partner, Kind.WANT, put(number) + b"".join(missing), now)
        self._pump(partner, now)

    def on_want(self, partner: Partner, reader: Reader, now: float) -> None:
        number = reader.integer()
        if number >= BUCKETS or not partner.listing:
            raise BadFrame(f"an answer about bucket {number} that nobody waits for")
        partner.listing -= 1
        partner.touched_at = now
        marks: set[int] = set()
        while not reader.is_over:
            marks.add(int.from_bytes(reader.take(8), "big"))
            if len(marks) > MOST_MARKS:
                raise BadFrame(f"more than {MOST_MARKS} retained messages are asked for at once")
        bucket = self._versions.buckets[number]
        if marks and len(bucket) > _LONG_BUCKET:
            partner.buckets.append(number)  # it has grown
        elif marks:
            self._did(len(bucket) * _WORK_PER_MARK)
            for topic in bucket:
                if mark_of(topic) in marks:
                    partner.wanted[topic] = None
        self._list_more(partner, now)
        self._pump(partner, now)
