"""What runs beside a broker, and how another door than MQTT asks who somebody is and what they may see.

Questions are asked in the broker's thread, of the same access control as MQTT's; verdicts may come later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tieline.core.ports import Allowed, Login, Pending, Refused, Verdict

if TYPE_CHECKING:
    from tieline.net.server import Server

Done = Callable[[Allowed | Refused], None]


class Beside(Protocol):
    """A service that lives as long as the broker does."""

    async def start(self, server: Server) -> None:
        """The broker is about to serve: begin, or raise an OSError that says why not."""

    async def stop(self) -> None:
        """End whatever was begun, because the broker is about to end."""


class Inquiries:
    """Questions of other doors that wait for a verdict, by their token."""

    def __init__(self) -> None:
        self._waiting: dict[int, Done] = {}

    def admit(self, server: Server, login: Login, done: Done) -> None:
        """Ask who a login is; ``done`` hears the verdict, at once or later."""
        if server.door is not None:
            verdict = server.door.gate.admit(login, done)
            if verdict is not None:
                done(verdict)
            return
        self._take(server.core.access.connect(login), done)

    def may_see(self, server: Server, login: Login, filter_: str, done: Done) -> None:
        """May somebody who was let in read these topics?"""
        self._take(server.core.access.subscribe(login, filter_), done)

    def may_publish(self, server: Server, login: Login, topic: str, done: Done) -> None:
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
