"""What runs beside a broker, and how another door than MQTT asks who somebody is and what they may see.

Questions are asked in the broker's thread, of the same access control as MQTT's; verdicts may come later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol  # Any: values of JSON

from tieline.core.ports import Allowed, Login, Pending, Refused, Verdict

if TYPE_CHECKING:
    import asyncio

    from tieline.conf.schema import Listener, Settings
    from tieline.core.broker import Broker as Core
    from tieline.core.figures.history import History
    from tieline.net.auth.door import Door
    from tieline.net.auth.passwords import Passwords
    from tieline.net.entrance import Entrance
    from tieline.net.net_report import NetReport
    from tieline.net.peer_settings import Secrets
    from tieline.net.ring_report import RingReport
    from tieline.net.trust import Context
    from tieline.net.vitals import Vitals

Done = Callable[[Allowed | Refused], None]


class Renewal(NamedTuple):
    """What a broker acts by, read again: settings, one TLS context for each listener, users, what brokers prove."""

    settings: Settings
    contexts: Sequence[Context | None]
    users: Passwords | None
    known: Secrets | None


class Reports(Protocol):
    """Figures for people; rates are since the same one asked last."""

    def answer(self, asker: str) -> dict[str, Any]:
        """The figures of this moment."""


class Looks(Protocol):
    """What is measured for those who look at the broker."""

    def verdict(self, now: float) -> dict[str, Any]:
        """How the broker is, and what needs attention."""

    def brief(self, now: float) -> dict[str, Any]:
        """What another broker is told that shows this one."""

    def watch(self, now: float) -> None:
        """Somebody looks, and will for a while."""

    async def conditions(self, question: dict[str, Any], now: float) -> dict[str, Any]:
        """Which conditions are asked of messages, and how many of those they looked at were wanted."""

    @property
    def history(self) -> History:
        """What is remembered of the numbers of the last hour."""


class AnswersPlans(Protocol):
    """The plans of one broker."""

    @property
    def epoch(self) -> int:
        """The number of the plan in force; 0 for none."""

    def answer(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        """Do what a request asks for."""


class AsksOthers(Protocol):
    """Asks other brokers on behalf of whoever runs this one."""

    async def answer(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        """Answer a question about causes, with what other brokers have to say."""

    @property
    def plans(self) -> AnswersPlans:
        """What there is to say and do about plans here."""

    async def of_one(self, question: dict[str, Any], name: str, *, within_s: float = 2.0) -> dict[str, Any]:
        """What one other broker says to a question, as it says it."""

    async def of_all(self, found: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
        """An answer of this broker, and beside it those of all others."""

    async def forget(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have all brokers in reach take another one to be gone for good."""


class Running(Protocol):
    """A broker that runs, as far as what is beside it needs to know; :class:`tieline.net.server.Server` is one."""

    settings: Settings
    #: Who may come in; None where an embedding program decides that.
    door: Door | None
    #: Reads the settings again, for a reload; None where nobody can.
    reread: Callable[[], Settings] | None
    #: Reloads take turns.
    reloading: asyncio.Lock
    inquiries: Inquiries
    vitals: Vitals
    #: When it began, by the monotonic clock.
    started: float
    #: What is known of the network of brokers; None where it is alone.
    net: NetReport | None
    #: What is known of the ring of brokers; None where it is on none.
    ring: RingReport | None

    @property
    def core(self) -> Core: ...
    @property
    def across(self) -> AsksOthers | None:
        """Asks other brokers, and answers them; None where it is alone."""

    @property
    def top(self) -> Reports:
        """What an operator looks at first."""

    @property
    def page(self) -> Looks:
        """What is measured for the live page."""

    @property
    def urls(self) -> list[str]: ...
    @property
    def has_users(self) -> bool: ...
    @property
    def logins(self) -> dict[str, int]: ...

    def renew(self, renewal: Renewal) -> int:
        """Act by what was read again; how many clients had to go."""

    def entrance(self, conf: Listener) -> Entrance:
        """Where connections come in that another door has accepted; in the broker's thread."""

    def poke(self) -> None:
        """Something outside a turn has changed the core."""

    def take_longest_turn(self) -> float:
        """Seconds, since this was last asked."""


class Service(Protocol):
    """A service that lives as long as the broker does."""

    @property
    def page_url(self) -> str:
        """Where it shows the live page; empty where it does not."""

    async def start(self, server: Running) -> None:
        """The broker is about to serve: begin, or raise an OSError that says why not."""

    async def stop(self) -> None:
        """End whatever was begun, because the broker is about to end."""


class Inquiries:
    """Questions of other doors that wait for a verdict, by their token."""

    def __init__(self) -> None:
        self._waiting: dict[int, Done] = {}

    def admit(self, server: Running, login: Login, done: Done) -> None:
        """Ask who a login is; ``done`` hears the verdict, at once or later."""
        if server.door is not None:
            verdict = server.door.gate.admit(login, done)
            if verdict is not None:
                done(verdict)
            return
        self._take(server.core.access.connect(login), done)

    def may_see(self, server: Running, login: Login, filter_: str, done: Done) -> None:
        """May somebody who was let in read these topics?"""
        self._take(server.core.access.subscribe(login, filter_), done)

    def may_publish(self, server: Running, login: Login, topic: str, done: Done) -> None:
        """May somebody who was let in publish to this topic?"""
        self._take(server.core.access.publish(login, topic), done)

    def _take(self, verdict: Verdict, done: Done) -> None:
        if isinstance(verdict, Pending):
            self._waiting[verdict.token] = done
        else:
            done(verdict)

    def decided(self, token: int, verdict: Allowed | Refused) -> bool:
        """A verdict came; whether it was one of these questions."""
        done = self._waiting.pop(token, None)
        if done is not None:
            done(verdict)
        return done is not None
