"""Very many sessions and brokers: the page shows a few of them and the way to the others, and stays small."""

from __future__ import annotations

import json
import re

from playwright.sync_api import WebSocketRoute

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.web.page.conftest import Open, Shown, World, settings
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Publish

SESSIONS = 10_000
BROKERS = 200
#: Elements on the page, whatever there is: lists are cut, and say so.
MOST_ELEMENTS = 4_000
#: Has a page remember how long it has painted, each time.
REMEMBER = """window.paints = []; window.drawn = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => paints.push(entry.duration)))
        .observe({ entryTypes: ["measure"] });"""


def test_ten_thousand_sessions_are_a_list_that_can_be_searched(open_eye: Open) -> None:
    shown = Shown(settings("control"))
    try:
        for number in range(SESSIONS):
            # a session that stays, without a socket that does
            dial(
                shown.broker.urls[0],
                f"meter-{number:05}",
                clean_start=False,
                properties={"session_expiry_interval": 3600},
            ).close()
        until(lambda: shown.broker.ask(lambda core: len(core.sessions)) >= SESSIONS, "all sessions are there")
        eye = open_eye(shown.url, init=REMEMBER)
        page = eye.look("clients")
        page.get_by_role("button", name=re.compile("^All 10,00")).click()
        page.wait_for_selector(".sessions-card tbody tr >> nth=99")
        page.wait_for_selector("text=The first 100")
        assert page.locator(".sessions-card tbody tr").count() == 100
        page.evaluate("paints.length = 0")
        until(lambda: page.evaluate("paints.length") >= 8, "it is painted again")
        # measured, not asserted
        print(f"paints of {SESSIONS:,} sessions: {max(page.evaluate('paints')):.0f} ms at most")
        page.fill("input[type=search]", "meter-07777")
        until(lambda: page.locator(".sessions-card tbody tr").count() == 1, "it is found")
        for view in ("overview", "messages"):
            eye.look(view)
            assert page.locator("*").count() < MOST_ELEMENTS
        eye.check()
    finally:
        shown.close()


class Crowd:
    """Stands between a page and its broker, and makes two hundred brokers of three."""

    def __init__(self, route: WebSocketRoute) -> None:
        self._framer = Framer(1 << 24, 5)
        self._page = route
        server = route.connect_to_server()
        server.on_message(self._pass)

    @classmethod
    def between(cls, route: WebSocketRoute) -> None:
        """Stand there."""
        cls(route)

    def _pass(self, data: str | bytes) -> None:
        assert isinstance(data, bytes)
        for packet in self._framer.feed(data):
            if isinstance(packet, Publish):
                packet = Publish(topic=packet.topic, payload=json.dumps(grown(json.loads(packet.payload))).encode())
            self._page.send(encode(packet, 5))


def grown(page: dict[str, object]) -> dict[str, object]:
    """The same object with so many brokers, joined as a ring with some chords."""
    kinds = ("ok", "ok", "ok", "ok", "warn", "silent")
    page["brokers"] = [
        {"name": f"substation-{n:03}", "state": kinds[n % 6], "per_s": 10.0 * n, "clients": n, "lag_s": 0.001}
        | {"age_s": 1.0, "is_here": n == 0, "at": None}
        for n in range(BROKERS)
    ]
    pairs = [(n, (n + step) % BROKERS) for n in range(BROKERS) for step in ((1, 37) if n % 10 == 0 else (1,))]
    page["links"] = [_link(a, b) for a, b in pairs[:BROKERS]]
    return page


def _link(a: int, b: int) -> dict[str, object]:
    known = {"used": a / 200, "bps": 1e5, "capacity_bps": 5e5, "to_bps": [5e4, 5e4], "round_trip_s": 0.02, "up_s": 5.0}
    unknown: dict[str, object] = {
        "round_trip_p99_s": None,
        "useless": 0.0,
        "waiting": 0,
        "down_s": 3.0,
        "why": "",
        "classes": [],
    }
    ends = [f"substation-{a:03}", f"substation-{b:03}"]
    return {"ends": ends, "state": "down" if a % 50 == 7 else "up", **known, **unknown}


def test_two_hundred_brokers_are_arranged_once_and_never_hold_up_a_person(world: World, open_eye: Open) -> None:
    eye = open_eye(world.shown.url, init=REMEMBER)
    eye.page.route_web_socket("**/mqtt", Crowd.between)
    page = eye.look("network")
    page.wait_for_selector(".graph.crowd .node >> nth=199")
    where = "[...document.querySelectorAll('.graph .node circle')].map((circle) => circle.getAttribute('cx')).join()"
    first = page.evaluate(where)
    page.evaluate("paints.length = 0")
    until(lambda: page.evaluate("paints.length") >= 8, "it is painted again")
    assert page.evaluate(where) == first, "who has a place keeps it"
    assert page.locator("table[aria-label=Links] tbody tr").count() == 5, "the worst, and a way to all"
    page.click("text=All 200")
    page.wait_for_selector("table[aria-label=Links] tbody tr >> nth=199")
    eye.look("overview")
    assert page.locator("table[aria-label=Brokers] tbody tr").count() == 6
    assert page.locator("*").count() < MOST_ELEMENTS
    print(f"paints of the network: {max(page.evaluate('paints')):.0f} ms at most")  # measured, not asserted
    eye.check()
