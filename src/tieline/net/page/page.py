"""The broker's side of the live page: what is measured each second, said on a topic while somebody listens, and kept.

Theory of operation
-------------------
Once a second the counters are read, which costs the same however many clients there are.  What has to look at all
sessions is a survey that is taken in portions, each in a turn of its own: every second while somebody looks, else every
ten.  While somebody subscribes to ``$SYS/broker/tieline/page`` one object a second is composed and encoded, however
many listen; what that took is counted.  Other brokers are asked for a brief of themselves only while somebody looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from tieline.core.answers.survey import Survey, survey
from tieline.core.figures.feed import Feed
from tieline.net.fitting import fitting
from tieline.net.log import log
from tieline.net.page.asked import Asked
from tieline.net.page.neighbours import EVERY_S, Neighbours
from tieline.net.page.report import Report
from tieline.net.page.sampler import Sampler

if TYPE_CHECKING:
    from tieline.core.figures.history import History
    from tieline.net.services import Running

TOPIC: Final = "$SYS/broker/tieline/page"
#: The longest object, and its lists that are shortened where it would be longer.
LONGEST: Final = 65_536
_LISTS: Final = ("links", "brokers", "attention", "slowest", "drops", "events")
#: How often numbers are read; how often all sessions are looked at while nobody looks; how long one look counts.
PERIOD_S: Final = 1.0
SELDOM_S: Final = 10.0
WATCHED_S: Final = 15.0


class Page:
    """Measures one broker for those who look at it."""

    def __init__(self, server: Running) -> None:
        self._server = server
        core = server.core
        self.sampler = Sampler(server)
        self.feed = Feed(TOPIC, core.routes, core.delivery)
        self._asked_for = Asked(core)
        self._neighbours = Neighbours()
        self._report = Report(server, self._neighbours)
        #: The last survey that is complete, when it was begun, and the one under way.
        self._survey = Survey()
        self._surveyed = float("-inf")
        self._looking: Iterator[None] | None = None
        #: Somebody looks until then.
        self._watched_until = float("-inf")
        self._asked = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        self._asyncio: asyncio.AbstractEventLoop | None = None
        #: Seconds spent on what is said on the topic, since the start.
        self.spent_s = 0.0

    def start(self, now: float) -> None:
        """Begin to measure; called inside of asyncio, where later turns need not be."""
        self._asyncio = asyncio.get_running_loop()
        self._tick(now)

    def stop(self) -> None:
        """Ask nobody any more."""
        if self._asking is not None:
            self._asking.cancel()

    @property
    def history(self) -> History:
        """What is remembered of the numbers of the last hour."""
        return self.sampler.history

    @property
    def is_watched(self) -> bool:
        """Whether somebody looks, or has done so a moment ago."""
        return monotonic() < self._watched_until

    def watch(self, now: float) -> None:
        """Somebody looks, and will for a while."""
        self._watched_until = now + WATCHED_S

    def verdict(self, now: float) -> dict[str, Any]:
        """How the broker is, and what needs attention."""
        self.watch(now)
        return self._report.verdict(self.sampler.last, self._survey, now)

    def brief(self, now: float) -> dict[str, Any]:
        """What another broker is told that shows this one."""
        self.watch(now)
        return self._report.brief(self.sampler.last, self._survey, now)

    async def conditions(self, question: dict[str, Any], now: float) -> dict[str, Any]:
        """Which conditions there are, and how many of the messages they looked at were wanted."""
        return await self._asked_for.answer(question, now)

    def _tick(self, now: float) -> None:
        timers = self._server.core.timers
        timers.at(now + PERIOD_S, self._tick)
        if is_heard := self.feed.is_heard:
            self.watch(now)
        pause_s = PERIOD_S if now < self._watched_until else SELDOM_S
        # a timer may be late, and the next one then comes early
        if self._looking is None and now - self._surveyed >= pause_s - PERIOD_S / 2:
            self._look(now)
        self.sampler.sample(now, time(), self._survey)
        self._report.notice(self.sampler.last.time)
        self._asked_for.forget(now)
        if is_heard:
            self._say(now)
            if self._server.across is not None and now - self._asked >= EVERY_S and self._asking is None:
                self._asked = now
                # a turn of the broker runs beside asyncio, which has to be told that there is something to do
                assert self._asyncio is not None
                self._asyncio.call_soon_threadsafe(self._begin_to_ask)

    def _look(self, now: float) -> None:
        self._surveyed = now
        found = Survey()
        self._looking = survey(self._server.core, now, found)
        self._go_on(found)

    def _go_on(self, found: Survey) -> None:
        """Take one portion now and the next one in the next turn."""
        assert self._looking is not None
        if next(self._looking, self) is self:
            self._looking = None
            self._survey = found
        else:
            self._server.core.timers.soon(lambda _now: self._go_on(found))

    def _say(self, now: float) -> None:
        began = monotonic()
        found = self._report.make(self.sampler.last, self._survey, now)
        found["cost"] = {
            "spent_s": self.spent_s,
            "spoken": self.feed.spoken,
            "passed_over": self.feed.passed_over,
        }
        data = fitting(found, _LISTS, LONGEST)
        if data is None:
            log.error("what the page shows has more than %d bytes", LONGEST)
            return
        self.feed.speak(data, now)
        self.spent_s += monotonic() - began

    def _begin_to_ask(self) -> None:
        if self._asking is None and self._asyncio is not None:
            self._asking = self._asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        across = self._server.across
        try:
            if across is not None:
                told = await across.of_all({}, {"do": "brief"})
                self._neighbours.heard(told["others"], told["silent"], monotonic())
        except Exception:  # noqa: BLE001 - the page goes on without what others would have said
            log.exception("other brokers could not be asked for the page")
        finally:
            self._asking = None
