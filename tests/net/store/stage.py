"""A durable store without a broker's loop: a test drives its socket by hand, and may end its writer in any way."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from tests.kits.patience import PATIENCE_S
from tieline.core.durable import facts
from tieline.core.ports import Fact
from tieline.core.restore import StoredState
from tieline.net.store.durable import Durable
from tieline.net.store.frames import Keep


class Stage:
    """One data directory and the store that is open on it."""

    def __init__(self, data: Path, keep: Keep | None = None) -> None:
        self.data = data
        self.keep = keep or Keep()
        #: The event types of the next broker, as stores keep them.
        self.declared = ""
        self._stores: list[Durable] = []
        #: What the writer said.
        self.troubles: list[str] = []
        self.alarms: list[str] = []
        self.ends: list[str] = []
        self.state = StoredState()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> Durable:
        """Open the store; what it knows is in ``state``."""
        store = Durable(self.data, self.keep, self.declared)
        store.on_alarm = self.alarms.append
        self.state = store.open()
        store.on_trouble = lambda text, _: self.troubles.append(text)
        store.on_end = self.ends.append
        self._stores.append(store)
        return store

    def close(self) -> None:
        """End every store in good order."""
        while self._stores:
            self._stores.pop().close()

    def writer(self, store: Durable) -> int:
        """The process id of a store's writer."""
        assert store._process is not None
        return store._process.pid

    def crash(self, store: Durable) -> None:
        """Kill the writer at once; what it had not committed is gone."""
        os.kill(self.writer(store), signal.SIGKILL)
        store.close()
        self._stores.remove(store)

    def reopen(self, store: Durable) -> Durable:
        """Kill and open again."""
        self.crash(store)
        return self.open()

    def step(self, store: Durable, timeout_s: float = PATIENCE_S) -> bool:
        """Write what can be written and handle what the writer has to say; whether it had."""
        store.flush()
        events = select.POLLIN | (select.POLLOUT if store.backlog else 0)
        poll = select.poll()
        poll.register(store.fd, events)
        for _, ready in poll.poll(timeout_s * 1e3):
            store.handle(ready, monotonic(), False)
            return True
        return False

    def finish(self, store: Durable) -> None:
        """Let the writer make everything permanent, and answer what it was asked."""
        deadline = monotonic() + PATIENCE_S
        while store.committed < store.submitted or store.unanswered:
            assert monotonic() < deadline and not self.ends, f"the writer does not finish: {self.troubles} {self.ends}"
            self.step(store)


def clear(number: int = 0) -> Fact:
    """A fact that changes nothing."""
    return (facts.CLEAR, 0, b"topic/%d" % number)


def retain(number: int, payload: bytes = b"x") -> list[Fact]:
    """Facts that leave a retained message behind."""
    message: Fact = (facts.MESSAGE, 0, number, b"t/%d" % number, payload, 1, True, b"", None, "p", 1, 1, 2.5)
    return [message, (facts.RETAIN, 0, b"t/%d" % number, number)]


def record(number: int, payload: bytes = b"x") -> tuple[object, ...]:
    """The fields of a log record."""
    return (number, "p", 1, number, False, 1, False, 1, "normal", "t", payload, b"", b"12345678", None)
