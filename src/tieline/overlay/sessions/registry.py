"""Which broker keeps which session: every broker tells the others what begins and ends at it, in steps.

Theory of operation
-------------------
A session is known by a digest of its client id, and its *epoch* is when a client last connected to it: a clock that
never falls behind any epoch that was heard of.  Of two brokers that have a session of one client id, the one with the
later epoch keeps it; of equal epochs, that of the greater name.

News go out in steps of a few hundred, only to brokers in reach, and only as long as what is owed to one of them is
little.  Who was away gets what it has missed; who has missed more than is remembered, or begins anew, gets the whole.
Sessions that end with their connection are told of once, so that an older connection of that client ends elsewhere,
and not remembered by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from tieline.overlay.sessions.errands import Homes

#: What is said of a session: it outlives its connection; its client wanted nothing of an older one; it is over.
KEPT, CLEAN, OVER = 1, 2, 4
#: Entries of one step, and entries that are remembered at least for those who are away.
STEP: Final = 400
_REMEMBERED: Final = 20_000
#: Sessions of one broker that others remember; more are not found when their clients come to another broker.
MOST: Final = 200_000
#: The same of all brokers together, and what each takes, about.
MOST_OF_ALL = 2_000_000
ENTRY_BYTES: Final = 150
#: How far an epoch may be ahead of the clock here: more is a lie, and would make a clock that nobody reaches.
_AHEAD_MS: Final = 7 * 86_400_000


def digest_of(client_id: str) -> bytes:
    """What a client id is known by between brokers: as long for every id, and nobody finds another one for it."""
    return blake2b(client_id.encode(), digest_size=16).digest()


class Registry:
    """The sessions here with their epochs, and where those of other brokers are."""

    def __init__(self) -> None:
        self._clock = 0
        #: By digest, the client id and the epoch of each session here, and whether it is kept.
        self.own: dict[bytes, tuple[str, int, bool]] = {}
        #: By digest, each session that has left, while its new home may not be known everywhere: its epoch here, where
        #: it went, and its epoch there.
        self._departed: dict[bytes, tuple[int, int, int]] = {}
        #: By broker, the epochs of the sessions that it keeps, by digest.
        self._homes: dict[int, dict[bytes, int]] = {}
        #: How many those are.
        self._known = 0
        #: By digest, the epoch of a session elsewhere whose client wanted nothing of an older one.
        self._clean: dict[bytes, int] = {}
        #: Brokers that have said all of theirs since this one began.
        self.whole: set[int] = set()
        #: News with their numbers, oldest first.
        self._news: list[tuple[bytes, int, int]] = []
        self._last = 0
        #: By broker, the number of the last news that it was told, and the life of it that was told.
        self._told: dict[int, tuple[int, int]] = {}
        #: Entries that others have said and that were too many.
        self.beyond = 0

    # -- epochs

    def tick(self, now_ms: int) -> int:
        """An epoch that is later than all that are known."""
        self._clock = max(self._clock + 1, now_ms)
        return self._clock

    def heard(self, epoch: int, now_ms: int) -> bool:
        """Somebody has named an epoch; False if it cannot be one."""
        if epoch > now_ms + _AHEAD_MS and epoch > self._clock + _AHEAD_MS:
            return False
        self._clock = max(self._clock, epoch)
        return True

    # -- sessions here

    def epoch(self, client_id: str) -> int:
        """The epoch of a session here; 0 if there is none."""
        found = self.own.get(digest_of(client_id))
        return 0 if found is None else found[1]

    def put(self, client_id: str, epoch: int, *, is_kept: bool, is_clean: bool = False) -> None:
        """A session is here since an epoch."""
        digest = digest_of(client_id)
        self.own[digest] = client_id, epoch, is_kept
        self._tell(digest, epoch, (KEPT if is_kept else 0) | (CLEAN if is_clean else 0))

    def remove(self, client_id: str) -> None:
        """A session is over."""
        digest = digest_of(client_id)
        found = self.own.pop(digest, None)
        if found is not None and found[2]:
            self._tell(digest, found[1], OVER)

    def moved(self, client_id: str, broker: int, epoch: int) -> None:
        """A session of this broker is that of another one now, which will say so itself.

        Until then others may still ask for it here: the claim is passed on.
        """
        digest = digest_of(client_id)
        found = self.own.pop(digest, None)
        self._departed[digest] = 1 if found is None else found[1], broker, epoch

    def followed(self, client_id: str, epoch: int) -> None:
        """The new home of a session that left with an epoch needs nothing more of us; it may have left again since."""
        digest = digest_of(client_id)
        found = self._departed.get(digest)
        if found is not None and found[2] == epoch:
            del self._departed[digest]
            # whatever the new home has said by now is later
            self._homes.setdefault(found[1], {}).setdefault(digest, found[2])
            self._recount()

    def is_on_its_way(self, client_id: str, broker: int) -> bool:
        """Whether a session has gone from here to a broker that has not got everything of it yet."""
        departed = self._departed.get(digest_of(client_id))
        return departed is not None and departed[1] == broker

    def _tell(self, digest: bytes, epoch: int, flags: int) -> None:
        self._last += 1
        self._news.append((digest, epoch, flags))
        if len(self._news) > 2 * _REMEMBERED:
            del self._news[:_REMEMBERED]

    # -- sessions elsewhere

    def find(self, client_id: str) -> tuple[int, int] | None:
        """The broker that keeps a session, and its epoch; None if no other one does."""
        digest = digest_of(client_id)
        found = [(homes[digest], broker) for broker, homes in self._homes.items() if digest in homes]
        departed = self._departed.get(digest)
        if departed is not None:
            found.append((departed[2], departed[1]))
        if not found:
            return None
        epoch, broker = max(found)
        return broker, epoch

    def learn(self, broker: int, homes: Homes, now_ms: int, *, is_limited: bool) -> list[tuple[str, int, int]]:
        """Take in what a broker says; client ids of sessions here that are older, with the epoch and flags of that one.

        One that is limited cannot take what another broker has.
        """
        known = self._homes.setdefault(broker, {})
        if homes.is_whole:
            known.clear()
            self._recount()
            self.whole.add(broker)
        outranked = []
        for digest, epoch, flags in homes.entries:
            if flags & OVER:
                known.pop(digest, None)
                continue
            if len(digest) != 16 or not self.heard(epoch, now_ms):
                continue
            mine = self.own.get(digest)
            if is_limited and (mine is not None or self._is_elsewhere(digest, broker)):
                continue
            self._supersede(digest, broker, epoch)
            if flags & CLEAN:
                if len(self._clean) >= MOST:
                    self._clean.clear()
                self._clean[digest] = epoch
            if flags & KEPT:
                if (len(known) < MOST and self._known < MOST_OF_ALL) or digest in known:
                    self._known += digest not in known
                    known[digest] = epoch
                else:
                    self.beyond += 1
            else:
                known.pop(digest, None)
            if mine is not None and epoch >= mine[1]:
                outranked.append((mine[0], epoch, flags))
        self._recount()
        return outranked

    def _recount(self) -> None:
        self._known = sum(map(len, self._homes.values()))

    @property
    def kept_bytes(self) -> int:
        """What is kept of the sessions of others, about."""
        return self._known * ENTRY_BYTES

    def later(self, client_id: str, here: str, names: Mapping[int, str]) -> tuple[int, int, bool] | None:
        """Where the client of a session here has a later one, since which epoch, and whether that began clean."""
        digest, found = digest_of(client_id), self.find(client_id)
        if found is None or (found[1], names[found[0]]) <= (self.epoch(client_id), here):
            return None
        return *found, self._clean.get(digest) == found[1]

    def _supersede(self, digest: bytes, broker: int, epoch: int) -> None:
        """Nobody else has a session any more that is at a broker since a later epoch."""
        for other, homes in self._homes.items():
            if other != broker and homes.get(digest, epoch) < epoch:
                del homes[digest]

    def _is_elsewhere(self, digest: bytes, but: int) -> bool:
        return any(digest in homes for broker, homes in self._homes.items() if broker != but)

    def forget(self, broker: int) -> None:
        """A broker has begun anew and has no sessions."""
        self._homes.pop(broker, None)
        self._recount()
        self._told.pop(broker, None)
        self.whole.discard(broker)

    # -- what is to be said

    def next_step(self, broker: int, life: int) -> list[Homes]:
        """What a broker in this life of it does not know yet: a step, or the whole in several."""
        first = self._last - len(self._news)
        told, told_life = self._told.get(broker, (-1, -1))
        if told_life == life and told >= first:
            if told == self._last:
                return []
            start = told - first
            entries = self._news[start : start + STEP]
            self._told[broker] = told + len(entries), life
            return [Homes(False, entries)]
        self._told[broker] = self._last, life
        kept = [(digest, epoch, KEPT) for digest, (_, epoch, is_kept) in self.own.items() if is_kept]
        kept += [(digest, epoch, KEPT) for digest, (epoch, _, _) in self._departed.items() if digest not in self.own]
        return list(_portions(kept))

    def owes(self, broker: int, life: int) -> bool:
        """Whether a broker in this life of it does not know everything."""
        return self._told.get(broker) != (self._last, life)

    @property
    def elsewhere(self) -> Mapping[int, int]:
        """By broker, how many sessions it keeps."""
        return {broker: len(homes) for broker, homes in self._homes.items()}


def _portions(entries: list[tuple[bytes, int, int]]) -> Iterable[Homes]:
    yield Homes(True, entries[:STEP])
    for at in range(STEP, len(entries), STEP):
        yield Homes(False, entries[at : at + STEP])
