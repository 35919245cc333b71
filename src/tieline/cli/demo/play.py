"""The play: three brokers, a microgrid that publishes, those who listen, tables that fill, and a report at the end."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

import msgspec

from tieline.cli.demo.account import Account, write_account
from tieline.cli.demo.audience import Audience
from tieline.cli.demo.brokers import CENTRE, NORTH, SOUTH, Brokers
from tieline.cli.demo.checks import (
    ENOUGH,
    Check,
    check_acknowledged,
    check_feeder_to_feeder,
    check_killed,
    check_loop,
    check_overtaking,
    check_planned,
    check_report,
    check_tables,
    check_zones,
    read_contents,
)
from tieline.cli.demo.children import Child, Children, wait_for
from tieline.cli.demo.ledger import URGENT, Said, before, got_through, median_wait
from tieline.cli.demo.planner import Look, Planner
from tieline.cli.demo.show import Show, Step
from tieline.cli.management import Visitor, ask_over_http
from tieline.cli.trouble import Trouble

if TYPE_CHECKING:
    from tieline.sim.microgrid import World

#: The week that is reported on, Monday to Monday; its end is played live, what came before is backfilled.
WEEK: Final = datetime(2026, 3, 2, tzinfo=UTC)
_WEEK: Final = timedelta(days=7)
#: Seconds of the world in a second of the play.
SPEED: Final = 30
#: Time between two readings in the backfilled part of the week.
_COARSE_S: Final = 10
#: The network has grown so far that its weakest nodes break a clause, and the report has something to say.
_LOAD: Final = 2.05
#: Which of the world's clients are at the other feeder; all the others, its controller included, are at the first.
_AT_SOUTH: Final = ("meters-R1",)
#: The part of the live time that is over when the control centre's broker is killed.
_KILL_AT: Final = 0.75
#: How much longer the microgrid publishes for a plan that is late, and after the broker has come back.
_PLAN_S: Final = 90.0
_AFTERWARDS_S: Final = 2.0
#: So many messages wait for a link that carries less than is asked of it, and for how long that may take to be so.
_WAITING: Final = 200
_FULL_S: Final = 30.0
#: For how long a planner may be at work on the next plan: a few of its looks.
_SETTLED_S: Final = 20.0
#: Waits are those of readings that were sent within so long; the last ones are on their way whatever happens.
_SPAN_S: Final = 4.0
_SHARE_S: Final = 8.0
#: For how long a Spark job may run, and messages on their way may take.
_JOB_S: Final = 300.0
_ARRIVAL_S: Final = 60.0
_LOOK_S: Final = 0.5
_BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: What is left out without Spark.
OF_SPARK: Final = ("week", "ingest", "backfill", "report")
#: And without the planner.
OF_PLANNER: Final = ("plan",)


def steps() -> dict[str, Step]:
    """Everything that will be done, in the order in which it is shown."""
    return {
        "world": Step("a microgrid, from physics and a seed"),
        "brokers": Step("two feeders and a control centre, joined by thin links"),
        "audience": Step("subscribers by zone, an operator, a neighbour"),
        "live": Step("the last minutes of a week, live"),
        "plan": Step("the planner measures, and gives the brokers a plan"),
        "kill": Step("the control centre's broker is killed, and comes back"),
        "week": Step("the days before, as history"),
        "ingest": Step("Spark follows the logs of all brokers"),
        "backfill": Step("Spark brings the history into the tables"),
        "report": Step("the week's report by EN 50160"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How the play is to go."""

    seconds: float
    seed: int
    with_spark: bool
    with_planner: bool
    with_page: bool
    #: Where everything lies while it runs, and where the report goes.
    folder: Path
    report: Path


class Play:
    """One performance, from the beginning to the end."""

    def __init__(self, wishes: Wishes, show: Show, children: Children) -> None:
        self._wishes = wishes
        self._show = show
        self._children = children
        # whole steps of the coarse part, so that it ends where the live part begins
        self._live_s = max(1, round(wishes.seconds * SPEED / _COARSE_S)) * _COARSE_S
        self._lake = wishes.folder / "lake"
        #: The nodes whose readings come over the link that is too thin for them.
        self._crossing: frozenset[str] = frozenset()

    def run(self) -> list[Check]:
        """Play it to the end; the checks say how it went."""
        with self._show.doing("world"):
            world = self._world()
        brokers = self._join(world)
        history = self._start_history() if self._wishes.with_spark else None
        planner = Planner(self._children, brokers) if self._wishes.with_planner else None
        with ExitStack() as stack:
            with self._show.doing("audience"):
                audience = self._show.audience = stack.enter_context(Audience(brokers))
            live = _Live(self._show, world, brokers)
            audience.interlock.signal()
            ingest = None if history is None else self._ingest(brokers)
            if planner is not None:
                self._show.begin("plan")
                self._wait_for_waiting(live, brokers)
                planner.watch()
            seen_at = self._wait_for_plan(audience, live, brokers, planner)
            checks = self._crossed(audience, brokers, live, planner, seen_at)
            checks += self._killed(audience, brokers, live)
        if ingest is not None and history is not None:
            self._follow(ingest, brokers)
            self._backfill(history, brokers)
            checks.append(check_tables(self._show.ledger, read_contents(self._lake, [*brokers.log_urls])))
            checks.append(check_report(self._report()))
        return checks

    def _world(self) -> World:
        from tieline.sim.microgrid import Islanding, World
        from tieline.sim.microgrid.scenario import QUIET

        start_s = (WEEK + _WEEK).timestamp() - self._live_s
        # early, while a link is full, so that the way back is seen too
        island = Islanding(at_s=start_s + self._live_s * 0.15, duration_s=min(180.0, self._live_s * 0.4))
        self._show.alone_s = (island.at_s, island.at_s + island.duration_s)
        world = World(self._wishes.seed, "cigre_lv", start_s, load=_LOAD, rates=QUIET, script=[island])
        meters = zip(world.nodes, world.meters, strict=True)
        self._crossing = frozenset(node for node, meter in meters if meter not in _AT_SOUTH)
        return world

    def _join(self, world: World) -> Brokers:
        with self._show.doing("brokers") as step:
            wishes = self._wishes
            brokers = Brokers(
                self._children, wishes.folder, world, with_logs=wishes.with_spark, with_page=wishes.with_page
            )
            brokers.start()
            step.note = ", ".join(f"{name} mqtt://127.0.0.1:{brokers.port(name)}" for name in (NORTH, CENTRE, SOUTH))
        if brokers.http:
            self._show.tell(f"the page of the control centre: {brokers.http}/page/")
        self._show.tell(
            f"while it runs: tieline net --name {CENTRE} --watch, tieline top --name {NORTH}, "
            f"mosquitto_sub -p {brokers.port(SOUTH)} -t 'microgrid/+/+/reading?voltage<222'"
        )
        return brokers

    def _start_history(self) -> Child:
        """The week up to the live part, written by a process of its own."""
        self._show.begin("week")
        days = (_WEEK.total_seconds() - self._live_s) / 86_400
        words = ["--history", str(self._wishes.folder / "week"), "--seed", str(self._wishes.seed)]
        words += ("--start", WEEK.strftime("%Y-%m-%dT%H:%M:%S"), "--days", f"{days:.9f}", "--step", str(_COARSE_S))
        words += ("--load", str(_LOAD))
        return self._children.start("history", "sim", "microgrid", *words)

    def _ingest(self, brokers: Brokers) -> Child:
        """Spark follows the logs from now on."""
        self._show.begin("ingest")
        urls = [word for url in brokers.log_urls.values() for word in ("--url", url)]
        return self._spark("ingest", *self._into(brokers), *urls, "--reader", "spark", "--every", "1s")

    def _backfill(self, history: Child, brokers: Brokers) -> None:
        """The days before, once nobody else fills the lake."""
        self._wait(history, "the history took too long to write")
        self._show.end("week")
        with self._show.doing("backfill") as step:
            job = self._spark("backfill", *self._into(brokers), "--history", str(self._wishes.folder / "week"))
            self._wait(job, "the backfill took too long")
            step.note = job.said().replace(f" brought into {self._lake}", "")

    def _into(self, brokers: Brokers) -> tuple[str, ...]:
        return ("pipeline", "ingest", "--lake", str(self._lake), "--config", str(brokers.config(CENTRE)))

    def _wait_for_waiting(self, live: _Live, brokers: Brokers) -> None:
        """Until something waits for the link that is too thin: a plan of less would have nothing to move."""
        at_most = live.begun + _FULL_S
        live.join(self._children.check, until=lambda: brokers.waiting() >= _WAITING or time.monotonic() >= at_most)

    def _wait_for_plan(self, audience: Audience, live: _Live, brokers: Brokers, planner: Planner | None) -> float:
        """Until most of the time is over, and what waited before the plan has gone: slow machines take longer.

        The moment is given at which that was seen: a share that is counted anew at a later one may be another.
        """
        for_a_while = live.begun + _KILL_AT * self._wishes.seconds
        live.join(lambda: self._look(brokers), until=lambda: time.monotonic() >= for_a_while)
        seen_at = time.monotonic()
        at_most = seen_at + _PLAN_S
        if planner is None:
            return seen_at

        def is_compared() -> bool:
            nonlocal seen_at
            seen_at = now = time.monotonic()
            if now >= at_most:
                return True
            look = planner.applied
            if look is None or not planner.has_compared or now - _SHARE_S < look.came_at:
                return False
            crossing = self._over_the_link(before(self._show.ledger.sent_at, now))
            return (got_through(crossing, audience.operator, now - _SHARE_S, now) or 0.0) >= ENOUGH

        live.join(lambda: self._look(brokers), until=is_compared)
        return seen_at

    def _over_the_link(self, sent: dict[Said, tuple[float, int]]) -> dict[Said, tuple[float, int]]:
        """What was sent over the link that is too thin; what comes from the other feeder never waits."""
        return {said: each for said, each in sent.items() if said[0].split("/")[2] in self._crossing}

    def _crossed(
        self, audience: Audience, brokers: Brokers, live: _Live, planner: Planner | None, seen_at: float
    ) -> list[Check]:
        """What has crossed the links until now, before and since the plan; the last share is that of ``seen_at``."""
        ledger, operator = self._show.ledger, audience.operator
        now = self._show.until = time.monotonic()
        audience.interlock.end()
        sent = before(ledger.sent_at, now)
        urgent = [said for said, (_when, level) in sent.items() if level >= URGENT]
        _until(lambda: all(said in operator for said in urgent))
        look = None if planner is None else planner.applied
        full_until = now if look is None else look.came_at
        crossing = self._over_the_link(sent)
        full_s = median_wait(crossing, operator, full_until - _SPAN_S, full_until, now)
        since = None if look is None else got_through(crossing, operator, seen_at - _SHARE_S, seen_at)
        until_then = got_through(crossing, operator, live.begun, full_until)
        checks = [
            check_overtaking(sent, operator, full_s, now),
            check_feeder_to_feeder(audience.interlock.waits(), full_s),
        ]
        if planner is not None:
            if look is not None:
                self._show.end("plan", look.verdict)
            planned, status = self._planned(look, planner, brokers)
            checks.append(planned)
            checks.append(check_loop(until_then, since, status["planner"]))
            account = Account(
                begun=live.begun, planned_at=full_until, until=now, sent=crossing, came=dict(operator), status=status
            )
            write_account(self._wishes.report.with_name("plan.html"), account, checks)
        return checks

    def _planned(self, look: Look | None, planner: Planner, brokers: Brokers) -> tuple[Check, dict[str, Any]]:
        """Whether the plan is in force everywhere, and shown, with what brokers say of it.

        A planner that gives the brokers the next plan at this moment has not yet told all of them, or left no report of
        it: that is over with its look, and so it is asked again for a while.
        """
        deadline = time.monotonic() + _SETTLED_S
        while True:
            status = planner.status()
            planned = check_planned(look, status, self._shown(brokers))
            applied = (status["planner"] or {}).get("applied")
            is_whole = planned.is_good and applied is not None and applied["after"] is not None
            if is_whole or look is None or time.monotonic() > deadline:
                return planned, status
            self._children.check()
            time.sleep(_LOOK_S)

    def _shown(self, brokers: Brokers) -> dict[str, Any] | None:
        """What the page gets when it asks for the plan; None where there is no page."""
        if not brokers.http:
            return None
        question = msgspec.json.encode({"do": "plan", "detail": True})
        return ask_over_http(brokers.http, "POST", "/v1/ask", question, Visitor())

    def _killed(self, audience: Audience, brokers: Brokers, live: _Live) -> list[Check]:
        """The broker to which nearly everything goes ends without a word, while the microgrid goes on; and the end."""
        ledger = self._show.ledger
        with self._show.doing("kill") as step:
            away_s = brokers.kill_centre()
            waiting = sum(map(len, ledger.zones.values())) - sum(map(len, audience.zones.values()))
            step.note = f"with {waiting:,} readings on their way to it; back after {away_s:.1f} s"
        # what is published now comes to a broker that has begun again
        to_the_end = max(live.begun + self._wishes.seconds, time.monotonic() + _AFTERWARDS_S)
        live.join(lambda: self._look(brokers), until=lambda: time.monotonic() >= to_the_end)
        live.stop()
        live.join(lambda: self._look(brokers))
        _until(lambda: all(audience.zones[zone].total() >= len(ledger.zones[zone]) for zone in ledger.zones))
        return [
            check_zones(ledger, audience.zones),
            check_killed(ledger, audience.zones, waiting, away_s),
            check_acknowledged(ledger, live.refused),
        ]

    def _follow(self, ingest: Child, brokers: Brokers) -> None:
        """Until the tables have caught up with the logs, which do not grow any more."""
        deadline = time.monotonic() + _JOB_S
        while not self._look(brokers):
            if time.monotonic() > deadline:
                raise Trouble(f"ingest did not catch up within {_JOB_S:g} seconds: {ingest.said()}")
            time.sleep(_LOOK_S)
        ingest.stop()
        self._show.end("ingest", f"{self._show.ingested.rows:,} records")

    def _look(self, brokers: Brokers) -> bool:
        """See that nobody has failed, and how far the tables are; whether they have all of the logs."""
        self._children.check()
        if not brokers.log_urls:
            return False
        from tieline.pipeline.lake.document import newest_state
        from tieline.pipeline.lake.layout import Layout
        from tieline.pipeline.source.client import LogClient

        state, _folder = newest_state(Layout(self._lake).state)
        found = self._show.ingested
        found.rows = sum(state.positions.get(name, 0) for name in brokers.log_urls)
        found.latest = sum(LogClient(url).offsets().latest for url in brokers.log_urls.values())
        return found.rows >= found.latest

    def _report(self) -> Path | None:
        made = self._wishes.folder / "power-quality.html"
        with self._show.doing("report") as step:
            words = ["--lake", str(self._lake), "--out", str(made), "--network", "CIGRE low voltage"]
            words += ["--system", "island", "--from", f"{WEEK:%Y-%m-%d}", "--to", f"{WEEK + _WEEK:%Y-%m-%d}"]
            self._wait(self._spark("report", "pipeline", "quality", *words), "the report took too long")
            self._wishes.report.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made, self._wishes.report)
            step.note = str(self._wishes.report)
        return self._wishes.report

    def _spark(self, name: str, *words: str) -> Child:
        """A job that runs for seconds: Java need not optimise what it is about to end."""
        return self._children.start(name, *words, environment={"JDK_JAVA_OPTIONS": _BRIEF})

    def _wait(self, child: Child, complaint: str) -> None:
        deadline = time.monotonic() + _JOB_S
        while not wait_for(child, 1.0):
            self._children.check()
            if time.monotonic() > deadline:
                raise Trouble(f"{complaint}: more than {_JOB_S:g} seconds; {child.said()}")


class _Live:
    """The world, published by a thread until it is stopped."""

    def __init__(self, show: Show, world: World, brokers: Brokers) -> None:
        from tieline.sim.microgrid.publish import Publisher

        self._show = show
        north, south = (f"mqtt://127.0.0.1:{brokers.port(name)}" for name in (NORTH, SOUTH))
        elsewhere = dict.fromkeys(_AT_SOUTH, south)
        self._publisher = Publisher(
            world, north, speed=SPEED, readings_qos=2, elsewhere=elsewhere, is_apart=True, witness=show.ledger
        )
        show.publisher = self._publisher
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._play, daemon=True)
        show.begin("live")
        self.begun = time.monotonic()
        self._thread.start()

    @property
    def refused(self) -> int:
        """Messages that the broker did not take."""
        return self._publisher.tally.refused.total()

    def stop(self) -> None:
        """Have nothing more published; what was is still delivered."""
        self._publisher.stop()

    def join(self, look: Callable[[], object], *, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end, or until something is so; ``look`` raises if something else has gone wrong meanwhile."""
        while self._thread.is_alive() and not until():
            look()
            self._thread.join(_LOOK_S)
        if self._failure is not None:
            raise Trouble(str(self._failure))

    def _play(self) -> None:
        try:
            self._publisher.publish()
            self._show.end("live", f"{self._publisher.tally.published.total():,} messages")
        except Exception as problem:  # noqa: BLE001  told by the thread that waits
            self._failure = problem


def _until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for a while; the checks say it if it is not."""
    deadline = time.monotonic() + _ARRIVAL_S
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)  # a message too many could still arrive
