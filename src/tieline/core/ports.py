"""What the core calls outward: who may do what (Access), what must survive (Store), what takes long (Aside).

Access and Store answer at once or later.  A pending verdict stops the parsing of that one connection until
``Broker.decided(token, verdict)``; work handed to a store holds back the acknowledgements that depend on it until
``Broker.committed(token)``.  The memory versions here answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tieline.wire.reason import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What a client says of itself in CONNECT, and where it came from."""

    client_id: str
    username: str | None
    password: bytes | None
    listener: str
    peer: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """Yes; ``rule`` says by what right."""

    rule: str = "everyone"


@dataclass(frozen=True, slots=True)
class Refused:
    """No; ``rule`` says why, ``reason`` what the client is told."""

    rule: str
    reason: Reason = Reason.NOT_AUTHORIZED


@dataclass(frozen=True, slots=True)
class Pending:
    """Not known yet; ``Broker.decided`` will bring the verdict for this token."""

    token: int


Verdict = Allowed | Refused | Pending


class Access(Protocol):
    """Decides who may connect, publish and subscribe."""

    #: Everyone may do everything: the hot path need not ask.
    is_open: bool

    def connect(self, login: Login) -> Verdict:
        """May this client connect?"""

    def publish(self, login: Login, topic: str) -> Verdict:
        """May this client publish to this topic name (a will included)?"""

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        """May this client subscribe to this filter, without its $share part?"""


class Everyone:
    """Allows everything."""

    is_open = True

    def connect(self, login: Login) -> Verdict:
        """Yes."""
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        """Yes."""
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        """Yes."""
        return Allowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One change that an acknowledgement depends on.

    ``kind`` is one of: ``session`` (opened or changed), ``forget`` (a session ended), ``subscribe``, ``unsubscribe``,
    ``retain``, ``queue`` (a QoS 1 or 2 message waits for a session), ``hold`` (an inbound QoS 2 packet id is taken),
    ``release`` (it is free again), ``sent`` (a message was given a packet id), ``settled`` (that id is free again).
    """

    kind: str
    session: str = ""
    subject: object = None


class Store(Protocol):
    """Makes facts permanent, a batch at a time."""

    #: Nothing outlives the process: the core need not describe its work.
    is_volatile: bool

    def submit(self, facts: Sequence[Fact]) -> int:
        """Take a batch over and return its token; tokens grow."""

    @property
    def committed(self) -> int:
        """Every batch up to this token is permanent."""


class Memory:
    """Keeps nothing beyond the process, and so is done at once."""

    is_volatile = True

    def __init__(self) -> None:
        self._token = 0

    def submit(self, facts: Sequence[Fact]) -> int:
        """Done."""
        self._token += 1
        return self._token

    @property
    def committed(self) -> int:
        """Everything."""
        return self._token


class Aside(Protocol):
    """Has long work done beside the broker, which goes on meanwhile."""

    def __call__(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do the work, in any thread, then call ``done`` in the broker's own, with what went wrong."""


def at_once(work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
    """Without threads there is no beside."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - it belongs to whoever asked for the work
        done(error)
    else:
        done(None)
