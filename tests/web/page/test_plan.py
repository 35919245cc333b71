"""The view of plans when there is one: what it costs and moves, beside the ways before it, in every look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import Any, Final

import msgspec
import pytest
from playwright.sync_api import Locator, Page

from tests.kits.patience import until
from tests.net.test_peers import reaches
from tests.web.page.axe import axe_source, violations
from tests.web.page.conftest import Open, Shown, settings
from tests.web.page.test_views import LOOKS
from tieline import Settings
from tieline.conf.overlay import Peer
from tieline.conf.schema import Listener
from tieline.net.plan_requests import (
    AppliedReport,
    LinkReport,
    MoveReport,
    Passing,
    PlannerReport,
    ProposalReport,
    StepReport,
)
from tieline.pytest_plugin import BrokerThread

#: A topic of which nothing may become an element.
_HOSTILE: Final = "pv/<img src=x onerror=window.hurt=1>/reading"
_LONG: Final = "/".join(["substation-of-the-lower-valley"] * 6)
_MOVES: Final = tuple(
    MoveReport(topic=topic, rate=rate, before=("north", "control"), after=("north", "south", "control"))
    for topic, rate in [("pv/R1/reading", 26_750.0), (_HOSTILE, 9_000.0), (_LONG, 4_000.0), *[("pv/R9", 10.0)] * 5]
)
_PROPOSAL: Final = ProposalReport(
    checker="proven: every limit is kept", flows_moved=14, flows_left=2, shortfall_before=9_000.0,
    shortfall_after=0.0, objective_before=1306.0, objective_after=1118.0, unmet=0, seconds=14.8, bound=1114.0,
    requests=214, topics=96, moves=_MOVES,
    steps=tuple(
        StepReport(seconds=seconds, objective=objective, bound=bound)
        for seconds, objective, bound in [(0.1, 1306, 980), (2.0, 1200, 1050), (4.0, 1150, 1100), (9.0, 1118, 1114)]
    ),
)  # fmt: skip
_LINKS: Final = (
    LinkReport(ends=("control", "north"), load=66_000.0, planned=40_000.0, capacity=64_000.0),
    LinkReport(ends=("control", "south"), load=10_000.0, planned=36_000.0, capacity=64_000.0),
    LinkReport(ends=("north", "south"), load=0.0, planned=26_000.0, capacity=64_000.0),
)
_SINCE: Final = tuple(msgspec.structs.replace(link, load=link.planned or 0.0) for link in _LINKS)
_PROPOSED: Final = PlannerReport(
    state="proposed", verdict="plan 13 could be applied", look=3, every_s=10.0, proposal=_PROPOSAL, links=_LINKS,
    reasons=("control – north carries 103 % of what it may",), published=76_000.0,
)  # fmt: skip
_STAYS: Final = PlannerReport(
    state="stays", verdict="plan 13 stays: everything is as it was planned", look=6, every_s=10.0, links=_SINCE,
    published=76_000.0,
    applied=AppliedReport(
        epoch=13, before_epoch=0, ago_s=60.0, proposal=_PROPOSAL, links=_LINKS,
        before=Passing(carried=76_000.0, waiting=700_000.0), after=Passing(carried=102_000.0, waiting=0.0),
    ),
)  # fmt: skip


class Valley:
    """Three brokers, each joined with both others, one of which shows itself."""

    def __init__(self, stack: ExitStack) -> None:
        self.shown = Shown(settings("control", is_joined=True))
        stack.callback(self.shown.close)
        control = self.shown.broker
        north = stack.enter_context(self._feeder("north", control))
        stack.enter_context(self._feeder("south", control, north))
        until(partial(reaches, control, 2), "all brokers are joined")
        until(lambda: self._links() == 3, "every link is known")

    @staticmethod
    def _feeder(name: str, *others: BrokerThread) -> BrokerThread:
        peers = tuple(Peer(url=other.urls[1], capacity=512_000) for other in others)
        listener = tuple(Listener(url=f"{scheme}://127.0.0.1:0") for scheme in ("tcp", "peer"))
        return BrokerThread(Settings(name=name, listener=listener, peer=peers))

    def say(self, report: PlannerReport, epoch: int) -> None:
        """What a planner leaves here after its look, and the plan that it has given, if any."""
        if epoch:
            self._plan(act="put", piece={"epoch": epoch, "name": "valley"})
        self._plan(act="use", epoch=epoch)
        self._plan(act="report", report=msgspec.to_builtins(report))

    def _plan(self, **request: Any) -> None:
        across = self.shown.broker._server.across
        assert across is not None
        self.shown.broker.ask(lambda _core: across.plans.answer({"do": "plan", **request}, monotonic()))

    def _links(self) -> int:
        net = self.shown.broker._server.net
        assert net is not None
        return self.shown.broker.ask(lambda _core: len(net.answer("test", monotonic())["links"]))


@pytest.fixture(scope="module")
def valley() -> Iterator[Valley]:
    with ExitStack() as stack:
        yield Valley(stack)


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


def _tile(page: Page, title: str) -> Locator:
    return page.locator(f".tile:has(h2:text-is('{title}'))")


def _whole(page: Page, axe: str) -> None:
    """It is readable by everybody, holds only numbers that are some, and no name has become an element."""
    page.wait_for_selector(".plan-net svg >> nth=1")
    assert violations(page, axe) == []
    assert not re.search(r"\b(NaN|undefined|null|Infinity)\b", page.locator("body").inner_text())
    hidden = page.locator(".moves .scroll-y").evaluate("each => each.scrollWidth - each.clientWidth")
    assert hidden <= 0, "every way is seen to its end"
    assert page.locator("main img").count() == 0 and page.evaluate("window.hurt") is None


@pytest.mark.timeout(600)  # the first of these may have to install axe-core
@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_a_plan_that_waits_stands_beside_the_ways_of_now(
    valley: Valley, open_eye: Open, axe: str, theme: str, size: tuple[int, int]
) -> None:
    valley.say(_PROPOSED, 0)
    eye = open_eye(valley.shown.url, theme=theme, size=size)
    page = eye.look("plan")
    until(lambda: eye.verdict().startswith("A plan waits that would serve all 214 requests"), "the verdict says so")
    page.wait_for_selector("h2:text-is('Proposed')")
    assert "103 % → 63 %" in _tile(page, "Busiest link").inner_text().replace("\n", " ")
    assert "1,306 → 1,118" in _tile(page, "Cost").inner_text().replace("\n", " ")
    moved = page.locator("table[aria-label='What would move'] tbody tr")
    assert moved.count() == 3 and moved.first.inner_text().startswith("pv/R1/reading")
    page.get_by_role("button", name="The largest 8").click()
    until(lambda: moved.count() == 8, "all that are known are shown")
    assert _HOSTILE in moved.nth(1).inner_text()
    page.get_by_role("button", name="Fewer").click()
    steps = page.locator(".journey li").all_inner_texts()
    assert [step.split("\n")[0] for step in steps] == ["Measured", "Solved", "Proven", "Applied", "Compared"]
    assert page.locator(".journey li.done").count() == 3, "nothing has been applied"
    page.get_by_role("button", name="Copy command to apply").wait_for()
    _whole(page, axe)
    eye.check()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_a_plan_in_force_stands_beside_what_was_before_it(
    valley: Valley, open_eye: Open, axe: str, theme: str, size: tuple[int, int]
) -> None:
    valley.say(_STAYS, 13)
    eye = open_eye(valley.shown.url, theme=theme, size=size)
    page = eye.look("plan")
    until(lambda: eye.verdict().startswith("Plan 13 serves all 214 requests"), "the verdict says so")
    page.wait_for_selector("h2:text-is('In force')")
    assert page.locator("h2:text-is('Before')").count() == 1
    assert "700 kB → 0 " in _tile(page, "Waits for links").inner_text().replace("\n", " ")
    assert page.locator("table[aria-label='What moved'] tbody tr").count() == 3
    assert page.locator(".journey li.done").count() == 5, "it is measured, and compared"
    assert page.locator(".chart.bound").count() == 1
    assert page.get_by_role("button", name="Copy command to apply").count() == 0
    _whole(page, axe)
    eye.check()


def test_a_planner_that_finds_another_plan_is_seen_without_a_reload(valley: Valley, open_eye: Open) -> None:
    valley.say(_STAYS, 13)
    eye = open_eye(valley.shown.url)
    page = eye.look("plan")
    page.wait_for_selector("h2:text-is('In force')")
    valley.say(_PROPOSED, 0)
    page.wait_for_selector("h2:text-is('Proposed')")
    until(lambda: eye.verdict().startswith("A plan waits"), "the verdict follows")
    eye.check()
