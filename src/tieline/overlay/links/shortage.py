"""What becomes of messages where a link has too little room: the policy of this broker decides, and drops are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any  # Any: a policy orders whatever waits

from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.holdings import Kind
from tieline.overlay.frames.frame import Data
from tieline.overlay.frames.parcel import contents
from tieline.overlay.links.links import Link
from tieline.sched.policies import make
from tieline.sched.policy import Policy


class Shortage:
    """The rules of one broker for all its links, as they are configured when they are needed."""

    def __init__(self, core: Broker, names: Callable[[], Mapping[int, str]]) -> None:
        self._core = core
        #: By number, the brokers that are known.
        self._names = names
        #: Bytes that links hold, as the account of what is kept has them.
        self.accounted = 0

    def is_short(self) -> bool:
        """Whether the broker keeps nothing more for anybody."""
        return self._core.holdings.refusal(0) is not None

    def reckon(self, links: Iterable[Link], beside: int) -> None:
        """Count what waits for links, what is under way on them, and what has come in pieces; and what is kept beside.

        That is what others want, and messages of theirs that came too early or have no way.
        """
        held = sum(link.held_bytes for link in links) + beside
        if held != self.accounted:
            self._core.holdings.broker.take(Kind.LINKS, held - self.accounted)
            self.accounted = held

    def make_policy(self) -> Policy[Any]:
        """The policy that queues of clients have, with the rules that hold now."""
        return make(self._core.settings.priority.policy, self._core.priorities.classes.rules)

    def expired(self, broker: int, topic: bytes, messages: int, level: int, now: float) -> None:
        """Messages for a broker have expired while they waited for a way there."""
        self._core.account.drop(now, Drop.EXPIRED, f"broker {self._names()[broker]}", topic, messages, level=level)

    def dropped(self, data: Data, why: Drop, now: float) -> None:
        """Messages had to go: they are counted and recorded for each broker that does not get them."""
        names, account = self._names(), self._core.account
        for parcel in data.payloads:
            topic, messages = contents(parcel)
            for number in data.destinations:
                client = f"broker {names.get(number, '')}"
                account.drop(now, why, client, topic, messages, level=data.level, since=data.born)
