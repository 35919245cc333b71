"""The store in a running broker: opened before the first client, watched by the loop, closed after the last one.

Theory of operation
-------------------
Deadlines outlive the process, so the store needs a clock that does.  It is not the wall's: that leaps, as on a device
without a battery, which starts in 1970 and asks the network later; what was written before a leap would be over, or
would never be.  The store's clock goes on evenly while a broker runs.  How far the wall is ahead of it is noted
whenever that has changed, and by this the next broker finds out how long there was none.  A leap in that time cannot be
told from time that has passed.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Final

from tieline.conf.quantities import seconds
from tieline.conf.schema import Log, Settings
from tieline.core.account import Event
from tieline.net.store.declared_types import declared_in
from tieline.net.store.durable import Durable
from tieline.net.store.frames import Keep

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.net.loop import Loop

#: How often the broker's clock is compared with the wall's, and by how many seconds it leaps at least.
_CLOCK_S: Final = 10.0
_LEAP_S: Final = 1.0
#: Under which it is noted how far the wall's clock is ahead of the store's.
_CLOCK_KEY: Final = b"!clock"
_AHEAD: Final = struct.Struct(">d")
#: How long a shutdown waits for what clients were not told yet.
_CATCH_UP_S: Final = 10.0


def wants_store(settings: Settings) -> bool:
    """Whether these settings ask for a store that outlives the process."""
    return settings.data is not None and settings.store.engine == "sqlite"


def keep_of(log: Log) -> Keep:
    """How much of the log is kept, as the writer understands it."""
    return Keep(
        age_s=None if log.retention_age == "none" else seconds(log.retention_age),
        bytes=None if log.retention_bytes == "none" else log.retention_bytes,
        hard_bytes=None if log.hard_bytes == "none" else log.hard_bytes,
        readers=log.readers,
    )


class Keeper:
    """One data directory and the broker that it belongs to."""

    def __init__(self, settings: Settings, on_failure: Callable[[str], None]) -> None:
        """Open the directory; raises Unusable with a sentence when it cannot be used."""
        assert settings.data is not None
        self.store = Durable(settings.data, keep_of(settings.log), declared_in(settings))
        self._alarms: list[str] = []
        self.store.on_alarm = self._alarms.append
        self._on_failure = on_failure
        self._core: Broker | None = None
        self._loop: Loop | None = None
        #: The token that a shutdown waits for, and what tells it.
        self._awaited = 0
        self._caught_up = asyncio.Event()
        self._state = self.store.open()
        noted = [value for key, value in self._state.tables["note"] if key == _CLOCK_KEY]
        #: How far the wall's clock was ahead of the store's when that was noted last.
        self._ahead_s = float(_AHEAD.unpack(noted[0])[0]) if noted else 0.0

    @property
    def notes(self) -> list[tuple[bytes, bytes]]:
        """What the predecessor has noted for others than the core, before :meth:`begin`."""
        return [(key, value) for key, value in self._state.tables["note"] if key != _CLOCK_KEY]

    def begin(self, core: Broker, loop: Loop) -> None:
        """Give the broker what its predecessor left, and take over what it must not lose."""
        self._core, self._loop = core, loop
        now = monotonic()
        core.journal.kept_s = time() - now - self._ahead_s
        self._set_clock(now)
        core.restore(self._state, now)
        core.seal()
        del self._state
        store = self.store
        store.on_committed = self._committed
        store.on_portion = core.read_back
        store.on_trouble = core.store_is
        store.on_alarm = self._alarm
        store.on_end = self._end
        for text in self._alarms:
            self._alarm(text)
        store.attach(loop)
        loop.after_turn = store.flush

    def _committed(self, token: int) -> None:
        assert self._core is not None
        self._core.committed(token)
        if token >= self._awaited:
            self._caught_up.set()

    def _set_clock(self, now: float) -> None:
        assert self._core is not None
        journal = self._core.journal
        journal.epoch_s = time() - monotonic()
        ahead_s = journal.epoch_s - journal.kept_s
        if abs(ahead_s - self._ahead_s) > _LEAP_S:
            self._ahead_s = ahead_s
            journal.note(_CLOCK_KEY, _AHEAD.pack(ahead_s))
        self._core.timers.at(now + _CLOCK_S, self._set_clock)

    def _alarm(self, text: str) -> None:
        assert self._core is not None
        self._core.account.tell(Event("store", "", "", text, is_trouble=True))
        self._core.system.publish("$SYS/broker/tieline/store/alarm", text, monotonic())

    def _end(self, text: str) -> None:
        assert self._core is not None
        self._core.store_is(text, monotonic())
        self._on_failure(text)

    async def catch_up(self) -> None:
        """Wait until everything that was submitted so far is permanent, with turns going on."""
        self._caught_up.clear()
        assert self._core is not None
        self.store.flush()
        self._awaited = self.store.submitted
        if self.store.committed < self._awaited and not self._core.journal.trouble:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CATCH_UP_S):
                    await self._caught_up.wait()

    def detach(self) -> None:
        """Let go of the loop, which ends; the writer process lives on."""
        self.store.detach()
        if self._loop is not None:
            self._loop.after_turn = None

    async def end(self) -> None:
        """Hand over the last facts and wait for the writer to finish; not on the loop."""
        if self._core is not None:
            self._core.seal()
        self.detach()
        await asyncio.to_thread(self.store.close)
