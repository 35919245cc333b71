"""What the core calls outward: who may (Access), what must survive (Store), what takes long (Aside), who else is there.

Access and Store answer at once or later.  A pending verdict stops the parsing of that one connection until
``Broker.decided(token, verdict)``; work handed to a store holds back the acknowledgements that depend on it until
``Broker.committed(token)``.  The memory versions here answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, runtime_checkable  # Any: a fact's parts differ by kind

from msgspec import Struct

from tieline.wire.reason import Reason

#: Something that has to survive (:mod:`tieline.core.durable.facts`).
Fact = tuple[Any, ...]
#: Records or occurrences of the log, as tuples of their fields (:mod:`tieline.log.record`).
Rows = Sequence[tuple[object, ...]]


class Login(Struct, frozen=True, kw_only=True):
    """What a client says of itself in CONNECT, where it came from, and who it turned out to be."""

    client_id: str
    username: str | None
    #: Gone once the client was let in, and in no log: whatever prints a login must not print this.
    password: bytes | None
    listener: str
    peer: str
    #: Who its certificate says it is, on listeners that ask.
    certificate_user: str | None = None
    #: Who it is, as the verdict on CONNECT said; None for nobody in particular.
    user: str | None = None

    def __repr__(self) -> str:
        return f"<Login {self.client_id!r} as {self.username!r} from {self.peer} by {self.listener}>"


class Allowed(Struct, frozen=True):
    """Yes; ``rule`` says by what right.

    For CONNECT also who the client is: ``user``, else the user name it gave, else nobody; and nobody, whatever it
    gave, with ``is_anonymous``.
    """

    rule: str = "everyone"
    user: str | None = None
    is_anonymous: bool = False

    def name_of(self, login: Login) -> str | None:
        """Who a client is that was let in: nobody with an empty name, and not the one that it claims either."""
        if self.is_anonymous:
            return None
        return login.username if self.user is None else self.user or None


class Refused(Struct, frozen=True):
    """No; ``rule`` says why, ``reason`` what the client is told."""

    rule: str
    reason: Reason = Reason.NOT_AUTHORIZED


class Pending(Struct, frozen=True):
    """Not known yet; ``Broker.decided`` will bring the verdict for this token."""

    token: int


Verdict = Allowed | Refused | Pending


class Access(Protocol):
    """Decides who may connect, publish and subscribe."""

    @property
    def is_open(self) -> bool:
        """Everyone may publish and subscribe to everything: the hot path need not ask."""

    def connect(self, login: Login) -> Verdict:
        """May this client connect, and who is it?"""

    def publish(self, login: Login, topic: str) -> Verdict:
        """May this client publish to this topic name (a will included)?"""

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        """May this client subscribe to this filter, without its $share part?"""


Action = Literal["read", "write", "subscribe"]


@runtime_checkable
class Judge(Protocol):
    """What an Access may offer in addition: verdicts on single topics, at once, also for clients that are away.

    With it, no message reaches a session whose user may not read its topic, whatever subscription it came by.
    """

    @property
    def is_open(self) -> bool:
        """Everybody may read and write everything: nobody need be asked."""

    def may(self, action: Action, user: str | None, client_id: str, topic: str) -> bool:
        """Whether a user may do this with a topic name."""


@runtime_checkable
class Explains(Protocol):
    """What a judge may offer in addition: its verdicts with the rules behind them."""

    def explain(self, action: Action, user: str | None, client_id: str, topic: str) -> Allowed | Refused:
        """What :meth:`Judge.may` says, and by which rule."""


@runtime_checkable
class Weighed(Protocol):
    """What an Access may offer in addition: how much work its answers are."""

    @property
    def effort(self) -> int:
        """What one question about a topic or filter costs at most, in the units of :mod:`tieline.core.work`."""


class Everyone:
    """Allows everything to everybody: the access control of a broker that was given none."""

    is_open = True

    def connect(self, login: Login) -> Verdict:
        """Allow it; the client is whoever it says it is."""
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        """Allow every topic to everybody."""
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        """Allow every filter to everybody."""
        return Allowed()


class Store(Protocol):
    """Makes facts permanent, a batch at a time: all of a batch or nothing."""

    #: Nothing outlives the process: the core need not describe its work.
    is_volatile: bool
    #: It has been given more than it can make permanent soon: nothing more should be read from clients.
    is_behind: bool

    def submit(self, facts: Sequence[Fact], log: Rows = (), events: Rows = ()) -> int:
        """Take a batch over and return its token; tokens grow."""

    @property
    def committed(self) -> int:
        """Every batch up to this token is permanent."""


class Portion(NamedTuple):
    """A part of what waited for a session in the store alone, oldest first."""

    session: int
    lane: int
    #: Where it ends: the next part begins behind it.
    last: int
    #: Messages as rows (:class:`tieline.core.restore.StoredState`), each with options, identifiers and share.
    entries: Sequence[tuple[Any, Any]]


@runtime_checkable
class Reads(Protocol):
    """What a Store may offer in addition: messages may wait in it alone, and are read when somebody comes for them."""

    def read(self, session: int, lane: int, after: int, messages: int, size: int) -> None:
        """Ask for what waits for a session in one lane, behind a place, as it is after all that was submitted so far.

        At most so many messages, and no more than so many bytes, but one message at least; ``Broker.read_back`` brings
        it, also if there is none.
        """


class Memory:
    """Keeps nothing beyond the process, and so is done at once."""

    is_volatile = True
    is_behind = False

    def __init__(self) -> None:
        self._token = 0

    def submit(self, facts: Sequence[Fact], log: Rows = (), events: Rows = ()) -> int:
        """Take a batch, and forget it."""
        self._token += 1
        return self._token

    @property
    def committed(self) -> int:
        """The last token: nothing waits for a disk."""
        return self._token


class Prospect(NamedTuple):
    """What would become of a message for another broker, which nobody has sent yet."""

    #: Whether it leaves now, waits here, or is dropped.
    fate: Literal["carried", "waits", "dropped"]
    #: By which links, or why not.
    text: str
    #: The brokers on its way, this one first; nothing where it leaves by several links, or does not leave.
    way: tuple[str, ...] = ()


class Neighbours(Protocol):
    """Other brokers that this one is joined with: they hear of what its clients want."""

    def began(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """A client subscribes to a bare filter, perhaps with a condition in its canonical spelling, or in a group."""

    def ended(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """A subscription that has begun is over."""

    def refusal(self, filter_: str, condition: str | None, share: str, of_session: int) -> str | None:
        """Why a client that is a member of so many groups cannot be one of another; None if it can."""

    def wait(self, then: Callable[[], None], now: float) -> bool:
        """Whether some broker does not know yet of what has begun; if so, ``then`` is called once all that can do."""

    def prospect(self, name: str, *, is_assured: bool) -> Prospect:
        """What would become of a message for one of them."""


class Alone:
    """The neighbours of a broker that has none."""

    def began(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """Nobody need hear of it."""

    def ended(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """Nobody need hear of it."""

    def refusal(self, filter_: str, condition: str | None, share: str, of_session: int) -> str | None:
        """There is nobody who would have to know of groups."""
        return None

    def wait(self, then: Callable[[], None], now: float) -> bool:
        """There is nobody to wait for."""
        return False

    def prospect(self, name: str, *, is_assured: bool) -> Prospect:
        """There is nobody to carry it."""
        return Prospect("dropped", "there is no other broker")


#: It has no state, so one is enough for all.
ALONE: Final = Alone()


class Aside(Protocol):
    """Has long work done beside the broker, which goes on meanwhile."""

    def __call__(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do the work, in any thread, then call ``done`` in the broker's own, with what went wrong."""


def at_once(work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
    """The Aside of a broker without threads: the work is done before this returns."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - it belongs to whoever asked for the work
        done(error)
    else:
        done(None)
