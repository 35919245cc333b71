"""Who is at the other end of a connection: settled before anything else is read.

Both ends say at once, in a line of text, who they are and a number that is used once.  Each answers with a proof
that it has a key: a code over both numbers, both names and who has dialled, so that nothing can be said back or
repeated later.  Where no key is set the proof is a dash.  Whoever does not accept the other says why, and closes.

There may be several keys.  A broker proves that it has the first, and accepts a proof with any: so a key can be
replaced at one broker after the other.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

#: Of the greeting and of everything behind it.
VERSION: Final = "tieline-peer/1"
#: Both lines together are shorter than this, or somebody else is there.
MOST: Final = 1_024
_NONE: Final = "-"


class Refusal(Exception):
    """The other end is not accepted; the text is a sentence."""

    def __init__(self, text: str, *, is_theirs: bool = False) -> None:
        super().__init__(text)
        #: The other end has said so, and need not be told.
        self.is_theirs = is_theirs


class Self(NamedTuple):
    """What a broker says of itself."""

    name: str
    cluster: str
    #: None where peers need not prove anything.
    keys: tuple[bytes, ...]
    #: By name, the keys of peers that have their own.
    own_keys: Mapping[str, tuple[bytes, ...]] = MappingProxyType({})

    def keys_of(self, name: str) -> tuple[bytes, ...]:
        """The keys that a peer may have; none where it need not prove anything."""
        return self.own_keys.get(name, self.keys)


def _accept_anybody(name: str) -> None:
    pass


class _Stage(Enum):
    INTRODUCTION = 1
    PROOF = 2
    DONE = 3


class Greeting:
    """One end of one greeting."""

    def __init__(
        self, me: Self, nonce: str, *, has_dialled: bool, check: Callable[[str], None] = _accept_anybody
    ) -> None:
        """``check`` refuses a name before it is answered: later, the other end would no longer read a refusal."""
        self._me = me
        self._check = check
        self._nonce = nonce
        self._has_dialled = has_dialled
        self._stage = _Stage.INTRODUCTION
        self._came = b""
        #: What is to be said; whoever writes it clears it.
        self.out = f"{VERSION} {me.name} {me.cluster} {nonce}\n".encode()
        #: Who the other end says it is; known to be true when the greeting is over.
        self.peer = ""
        #: The key that it has proven to have; None where none was asked for.
        self.key: bytes | None = None
        self._expected: list[tuple[str, bytes | None]] = []

    @property
    def is_over(self) -> bool:
        return self._stage is _Stage.DONE

    def take(self, data: bytes) -> bytes:
        """Read on; what stands behind the greeting once it is over.  Raises :class:`Refusal`."""
        self._came += data
        while self._stage is not _Stage.DONE:
            line, newline, rest = self._came.partition(b"\n")
            if not newline:
                if len(self._came) > MOST:
                    raise Refusal("what is at the other end is no broker: its greeting has no end")
                return b""
            self._came = rest
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise Refusal("what is at the other end is no broker: its greeting is no text") from None
            if text.startswith("no "):
                raise Refusal(text.removeprefix("no "), is_theirs=True)
            if self._stage is _Stage.INTRODUCTION:
                self._introduced(text)
            else:
                self._proven(text)
        rest, self._came = self._came, b""
        return rest

    def _introduced(self, text: str) -> None:
        version, *words = text.split(" ")
        if version != VERSION or len(words) != 3:
            raise Refusal(f"what is at the other end does not speak {VERSION}, but begins with {version[:32]!r}")
        name, cluster, nonce = words
        me = self._me
        if cluster != me.cluster:
            raise Refusal(f"broker {name} is of the cluster {cluster}, and broker {me.name} of {me.cluster}")
        if name == me.name:
            raise Refusal(f"both brokers are called {name}: give one of them another --name")
        self._check(name)
        self.peer = name
        mine = (self._nonce, nonce) if self._has_dialled else (nonce, self._nonce)
        keys: tuple[bytes | None, ...] = me.keys_of(name) or (None,)
        self.out += f"{self._proof(keys[0], me.name, name, mine, is_dialler=self._has_dialled)}\n".encode()
        self._expected = [
            (self._proof(key, name, me.name, mine, is_dialler=not self._has_dialled), key) for key in keys
        ]
        self._stage = _Stage.PROOF

    def _proof(  # with which key, who proves it to whom, and in which conversation
        self, key: bytes | None, prover: str, other: str, nonces: tuple[str, str], *, is_dialler: bool
    ) -> str:
        if key is None:
            return _NONE
        said = "\n".join((VERSION, self._me.cluster, prover, other, *nonces, "dialled" if is_dialler else "listened"))
        return hmac.digest(key, said.encode(), "sha256").hex()

    def _proven(self, proof: str) -> None:
        # all are compared, so that the time does not tell which it was
        found = [key for expected, key in self._expected if hmac.compare_digest(proof.encode(), expected.encode())]
        if not found:
            why = "another key"
            if proof == _NONE:
                why = "no key"
            elif not self._me.keys_of(self.peer):
                why = f"a key, and broker {self._me.name} has none"
            raise Refusal(f"broker {self.peer} has {why}")
        self.key = found[0]
        self._stage = _Stage.DONE
