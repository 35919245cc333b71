"""What a broker wants, entry by entry: subscriptions without who made them, as they travel and as they are kept.

An entry is the bare filter, the share name of a group, and the canonical condition with a fingerprint of the event
types that it was understood by.  Its terms are what may change while it lasts: the highest QoS, and for a group the
number of members.  Whoever knows the event types under another fingerprint cannot tell what a condition means, and
takes the entry for one without a condition: more is sent than is wanted, and the last hop decides exactly.

Everything here may come from a peer that means harm, so every number is bounded before memory is taken for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from tieline.match.where.parser import MAX_LENGTH
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.wire.errors import Violation
from tieline.wire.topics import SHARE, check_filter

#: Entries of one broker, and bytes of all of them together, that others keep.
MOST_ENTRIES: Final = 65_536
MOST_BYTES: Final = 4_194_304
#: Bytes of all brokers together.
MOST_OF_ALL: Final = 33_554_432
#: What a digest of conditions begins with where a condition is expected, and how long it may be.
DIGEST: Final = "\x01"
LONGEST_DIGEST: Final = 65_536
#: Levels of a filter, and members of a group, that another broker may speak of.
_LEVELS: Final = 256
_MEMBERS: Final = 1 << 32
#: Filters that match the same names as a shorter one.
_SHORTER: Final = {"+/#": "#", "/+/#": "/#"}
#: Filters that no client of a joined broker makes it ask for.
OF_ITSELF: Final = "$SYS/"
#: The lowest two bits are the QoS.
_SHARED, _CONDITIONAL, _KNOWN = 4, 8, 15


class Entry(NamedTuple):
    """One thing that a broker wants; equal entries want the same."""

    filter: str
    #: Empty without a group.
    share: str = ""
    #: Empty without a condition; then the fingerprint is 0.
    condition: str = ""
    fingerprint: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether everything with its topics is wanted, by the broker itself."""
        return not self.share and not self.condition


class Terms(NamedTuple):
    """What may change while an entry lasts."""

    qos: int
    #: Of a group, the subscriptions here that belong to it; else 0.
    members: int = 0


#: Entries with their terms.
Entries = Mapping[Entry, Terms]


class Known(NamedTuple):
    """What is known of another broker."""

    version: int
    entries: dict[Entry, Terms]


def entry_of(filter: str, *, share: str = "", condition: str | None = None, fingerprint: int = 0) -> Entry:
    """The entry of a subscription with a canonical condition, or without one.

    A group keeps its filter as it is spelled: another spelling would be another group.
    """
    if not share:
        filter = _SHORTER.get(filter, filter)
    return Entry(filter, share, condition, fingerprint) if condition else Entry(filter, share)


def size_of(entry: Entry) -> int:
    """About as many bytes as an entry takes when it travels."""
    return 8 + len(entry.filter) + len(entry.share) + len(entry.condition) + (8 if entry.condition else 0)


def size_of_all(entries: Collection[Entry]) -> int:
    """The sum of those, of tens of thousands in a moment."""
    filters, shares = [entry.filter for entry in entries], [entry.share for entry in entries]
    conditions = [entry.condition for entry in entries if entry.condition]
    texts = sum(map(len, filters)) + sum(map(len, shares)) + sum(map(len, conditions))
    return 8 * (len(entries) + len(conditions)) + texts


# -- as bytes


def put_entry(entry: Entry, terms: Terms) -> bytes:
    """An entry and its terms as they travel, and as a store may keep them."""
    flags = terms.qos | (_SHARED if entry.share else 0) | (_CONDITIONAL if entry.condition else 0)
    parts = [put(flags), put_bytes(entry.filter.encode())]
    if entry.share:
        parts += (put_bytes(entry.share.encode()), put(terms.members))
    if entry.condition:
        parts += (put_bytes(entry.condition.encode()), put(entry.fingerprint))
    return b"".join(parts)


def read_entry(reader: Reader) -> tuple[Entry, Terms]:
    """An entry and its terms; :class:`BadFrame` if it is none."""
    flags = reader.integer()
    qos = flags & 3
    if flags > _KNOWN or qos == 3:
        raise BadFrame(f"an entry with the flags {flags}")
    filter, share, members, condition, fingerprint = reader.text(), "", 0, "", 0
    if flags & _SHARED:
        share, members = reader.text(), reader.integer()
        if not share or "/" in share or not 0 < members <= _MEMBERS:
            raise BadFrame(f"a group {share!r} of {members} members")
    if flags & _CONDITIONAL:
        condition, fingerprint = reader.text(), reader.integer()
        if not 0 < len(condition) <= (LONGEST_DIGEST if condition.startswith(DIGEST) else MAX_LENGTH):
            raise BadFrame(f"a condition of {len(condition)} characters")
    try:
        if not share and filter.startswith(SHARE):
            raise BadFrame("a share that is not taken apart")
        check_filter(f"{SHARE}{share}/{filter}" if share else filter, _LEVELS)
    except Violation as error:
        raise BadFrame(f"an entry: {error}") from None
    return Entry(filter, share, condition, fingerprint), Terms(qos, members)


class Form(IntEnum):
    """How much of a broker's interest a body holds."""

    WHOLE = 1  # all entries under a version
    DELTA = 2  # what is new and what is gone between two versions
    REQUEST = 3  # nothing: whoever sends it asks for the whole


class Said(NamedTuple):
    """What one body says of a broker's interest."""

    broker: int
    form: Form
    #: The version that it leads to; of a request, the version that is known.
    version: int
    #: The version that a delta is to be applied to; else 0.
    base: int = 0
    added: Entries = MappingProxyType({})
    removed: frozenset[Entry] = frozenset()


def put_said(said: Said) -> bytes:
    """The body of an INTEREST frame."""
    parts = [put(said.broker, said.form, said.version)]
    if said.form is Form.DELTA:
        parts.append(put(said.base))
        parts += _put_all({entry: Terms(0, 1) for entry in said.removed})
    if said.form is not Form.REQUEST:
        parts += _put_all(said.added)
    return b"".join(parts)


def _put_all(entries: Entries) -> Iterable[bytes]:
    return (put(len(entries)), *(put_entry(entry, terms) for entry, terms in sorted(entries.items(), key=_rank)))


def _rank(item: tuple[Entry, Terms]) -> tuple[bool, Entry]:
    """What a broker says of itself comes before what its clients want: whoever reads that knows the former."""
    return not item[0].filter.startswith(OF_ITSELF), item[0]


def read_said(body: bytes) -> Said:
    """What a body says; :class:`BadFrame` if it cannot be, or is more than a broker may want."""
    reading = SaidReader(body)
    while not reading.read():
        pass
    return reading.said()


class SaidReader:
    """Reads what a body says, its entries in portions; raises :class:`BadFrame`."""

    __slots__ = ("_added", "_base", "_left", "_reader", "_removed", "_size", "broker", "form", "version")

    def __init__(self, body: bytes) -> None:
        """Reads the head, which says of whom, how much and which version this is."""
        reader = self._reader = Reader(body)
        self.broker, number, self.version = reader.broker(), reader.integer(), reader.integer()
        try:
            self.form = Form(number)
        except ValueError as error:
            raise BadFrame(str(error)) from None
        self._base = 0
        self._added: dict[Entry, Terms] = {}
        self._removed: dict[Entry, Terms] = {}
        #: What is left of the entries that have begun, each time those that are gone and then those that are new.
        self._left: list[tuple[dict[Entry, Terms], int]] = []
        self._size = 0
        if self.form is Form.DELTA:
            self._base = reader.integer()
            if self._base >= self.version:
                raise BadFrame(f"a step from version {self._base} to {self.version}")

    @property
    def head(self) -> Said:
        """What is said, without entries."""
        return Said(self.broker, self.form, self.version, self._base)

    def read(self, most: int = 64) -> bool:
        """Read some entries more; whether that was all of them."""
        reader = self._reader
        if not self._left:
            targets = {Form.WHOLE: [self._added], Form.DELTA: [self._added, self._removed], Form.REQUEST: []}
            self._left = [(target, -1) for target in targets[self.form]]
        while self._left and most > 0:
            into, left = self._left.pop()
            if left < 0:
                left = reader.count()
                if left > MOST_ENTRIES:
                    raise BadFrame(f"{left} entries at once")
                self._size = 0
            count = min(left, most)
            for _ in range(count):
                entry, terms = read_entry(reader)
                into[entry] = terms
                self._size += size_of(entry)
            check_size(len(into), self._size)
            most -= max(count, 1)
            if left > count:
                self._left.append((into, left - count))
        if self._left:
            return False
        if not reader.is_over:
            raise BadFrame("bytes behind an interest")
        return True

    @property
    def added(self) -> Entries:
        """What is new, once it was read."""
        return self._added

    @property
    def removed(self) -> Collection[Entry]:
        """What is gone, once it was read."""
        return self._removed

    def said(self) -> Said:
        """Everything, once it was read."""
        return self.head._replace(added=self._added, removed=frozenset(self._removed))


def check_total(size: int) -> None:
    """Refuse more than all brokers together may want: whoever has the key can invent brokers."""
    if size > MOST_OF_ALL:
        raise BadFrame(f"interests of more than {MOST_OF_ALL} bytes")


def check_size(count: int, size: int) -> None:
    """Refuse as many entries, or as many bytes of them, as one broker may not want."""
    if count > MOST_ENTRIES:
        raise BadFrame(f"an interest of {count} entries")
    if size > MOST_BYTES:
        raise BadFrame(f"an interest of more than {MOST_BYTES} bytes")
