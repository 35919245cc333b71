"""Every view with joined brokers at work: it answers, fits every screen, keeps nobody out, and nothing leaves home."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.web.page.axe import axe_source, violations
from tests.web.page.conftest import DESK, PHONE, Open, World

VIEWS = ("overview", "messages", "clients", "network", "grid", "plan")
LOOKS = (("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE))


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


@pytest.mark.timeout(600)  # the first of these may have to install axe-core
@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_every_view_is_whole_in_every_look(
    world: World, open_eye: Open, axe: str, theme: str, size: tuple[int, int]
) -> None:
    eye = open_eye(world.shown.url, theme=theme, size=size)
    eye.look("grid")
    eye.page.wait_for_selector(".plane-box svg")
    eye.page.wait_for_selector("table[aria-label=Nodes] >> text=R1")
    for view in VIEWS:
        eye.look(view)
        assert eye.verdict().endswith("."), "it answers in a sentence"
        assert eye.page.evaluate("document.documentElement.dataset.theme") == theme
        assert not re.search(r"\b(NaN|undefined|null|Infinity)\b", eye.page.locator("body").inner_text())
        assert violations(eye.page, axe) == [], view
        eye.check()
    eye.page.keyboard.press("/")
    eye.page.fill("input[name=topic]", "microgrid/lv/R1/reading")
    eye.page.keyboard.press("Enter")
    eye.page.wait_for_selector("dialog .steps")
    assert violations(eye.page, axe) == []
    eye.check()


def test_a_trace_says_by_which_way_and_by_which_condition(world: World, open_eye: Open) -> None:
    condition = "$where/delta(frequency)%3E0.05/microgrid/+/+/reading"
    with dial(world.others["north"].urls[0], "storage-1") as far:
        far.subscribe(condition)
        eye = open_eye(world.shown.url)
        page = eye.look("overview")
        page.keyboard.press("/")
        page.fill("input[name=topic]", "microgrid/lv/R1/reading")
        page.fill("input[name=payload]", '{"voltage": 200, "frequency": 49.9}')
        table = page.locator("dialog table[aria-label=Receivers]")

        def rows() -> dict[str, list[str]]:
            page.click("dialog button:text('Trace')")
            page.wait_for_selector("dialog button.primary:not([disabled])")
            cells = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
            return {name: rest for name, *rest in cells}

        until(lambda: "storage-1" in rows(), "what is asked for elsewhere is known here")
        found = rows()
        assert table.locator("th").all_inner_texts() == ["Subscriber", "Fate", "At", "Way", "By", "Why"]
        assert found["storage-1"][1:4] == ["north", "control → north", "?delta(frequency)>0.05"]
        assert found["control-room"][1:4] == ["control", "–", "?voltage<207"]
        assert found["historian"][3] == "microgrid/#"
        assert "broker north" not in found, "who told of its receivers stands for itself no more"
        assert page.get_by_title(condition).count() == 1, "what was written is in the title"
        eye.check()


def test_what_is_shown_is_what_happens(world: World, open_eye: Open) -> None:
    eye = open_eye(world.shown.url)
    page = eye.look("overview")
    page.wait_for_selector(".fresh >> text=live")
    page.wait_for_selector("section:has(h2:text('Brokers')) >> text=north")
    page.wait_for_selector("section:has(h2:text('Slowest clients')) >> text=archive")
    assert page.locator("button.brokers").inner_text().split() == ["control", "one", "of", "3", "brokers"]
    page.wait_for_selector(".tile:has(h2:text('Received')) .note >> text=of clients")
    # nobody types these numbers: they move
    received = page.locator(".tile:has(h2:text('Received')) .value")
    first = received.inner_text()
    until(lambda: received.inner_text() != first, "the rate of messages moves")

    eye.look("clients")
    page.wait_for_selector("section:has(h2:text('Asked for by content')) >> text=voltage<207")
    page.get_by_role("group", name="Which sessions").get_by_role("button", name=re.compile("^All ")).click()
    page.fill("input[type=search]", "control-ro")
    until(lambda: page.locator(".sessions-card tbody tr").count() == 1, "the list is narrowed down")
    page.click(".sessions-card tbody button")
    page.wait_for_selector("dialog .steps >> text=control-room is connected")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")

    eye.look("network")
    page.wait_for_selector(".graph .name >> text=south")
    assert page.locator(".graph .link").count() == 2
    page.click("table[aria-label=Links] >> text=control – south")
    page.wait_for_selector(".side-panel h2:text('control – south')")

    eye.look("grid")
    page.wait_for_selector("table[aria-label=Nodes] >> text=R0")
    until(lambda: "below 207 V" in eye.verdict(), "the verdict is of the readings")
    eye.check()


def test_a_keyboard_is_enough(world: World, open_eye: Open) -> None:
    eye = open_eye(world.shown.url)
    page = eye.look("overview")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        eye.await_view(view)
        assert page.locator(".views a[aria-current=page]").inner_text().startswith(view.title())
    page.keyboard.press("?")
    page.wait_for_selector("dialog:has-text('Where would a message go?')")
    page.keyboard.press("1")
    assert page.locator("main").get_attribute("data-view") == "plan", "a dialog keeps keys to itself"
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")

    search = page.locator("button.search")
    search.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog input[name=topic]:focus")
    page.keyboard.type("microgrid/lv/R1/reading 1 ? /")  # letters, while somebody writes
    assert page.locator("dialog input[name=topic]").input_value().endswith("1 ? /")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert search.evaluate("button => button === document.activeElement"), "the focus is where it was"

    page.keyboard.press("4")
    page.wait_for_selector(".graph .link")
    page.locator(".graph .link[role=button]").last.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".graph .link.chosen")
    # everything that can be reached can be seen to be reached
    for _ in range(25):
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none" or page.evaluate(
            "document.activeElement === document.body"
        )
    eye.check()


def test_who_listens_hears_of_another_verdict_and_of_nothing_else(world: World, open_eye: Open) -> None:
    eye = open_eye(
        world.shown.url,
        init="""addEventListener("DOMContentLoaded", () => {
            window.spoken = [];
            new MutationObserver(() => spoken.push(document.getElementById("speak").textContent))
                .observe(document.getElementById("speak"), { childList: true, characterData: true, subtree: true });
        });""",
    )
    page = eye.look("overview")
    assert page.locator("[role=status]").count() == 1
    until(lambda: page.evaluate("spoken.length") > 0, "the first verdict is said")
    page.wait_for_timeout(3000)
    spoken = page.evaluate("spoken")
    assert all(one != other for one, other in pairwise(spoken)), "nothing is said twice"
    eye.check()


def test_colours_are_chosen_and_kept(world: World, open_eye: Open) -> None:
    eye = open_eye(world.shown.url)
    page = eye.look("overview")
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    eye.await_view("overview")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    eye.check()


def test_it_paints_at_most_four_times_a_second_and_not_while_hidden(world: World, open_eye: Open) -> None:
    eye = open_eye(
        world.shown.url,
        init="""window.paints = [];
            new PerformanceObserver((list) => list.getEntries().forEach((entry) => paints.push(entry.startTime)))
                .observe({ entryTypes: ["measure"] });""",
    )
    page = eye.look("grid")
    page.wait_for_selector("table[aria-label=Nodes] >> text=R0")
    page.evaluate("paints.length = 0")
    until(lambda: page.evaluate("paints.length") >= 8, "it paints")
    paints = page.evaluate("paints.slice(0, 8)")
    # eight readings and a page object each second would be many more; 240 allows for the clock of the browser
    assert all(later - earlier >= 240 for earlier, later in pairwise(paints))
    page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { get: () => window.isAway ?? true, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    page.wait_for_timeout(400)
    page.evaluate("paints.length = 0")
    page.wait_for_timeout(2500)
    assert page.evaluate("paints.length") == 0
    page.evaluate("() => { window.isAway = false; document.dispatchEvent(new Event('visibilitychange')); }")
    until(lambda: page.evaluate("paints.length") > 0, "it goes on when it is seen again")
    eye.check()


def test_words_of_events_lie_on_no_line_and_on_no_other_words(world: World, open_eye: Open) -> None:
    """Two thousand charts from a seed; whoever has no place beside its line is not there at all."""
    chance = random.Random(22)
    charts = [
        [
            {"x": x, "size": chance.uniform(5, 150)}
            for x in sorted(chance.uniform(0, 600) for _ in range(chance.randint(0, 12)))
        ]
        for _ in range(2_000)
    ]
    page = open_eye(world.shown.url).look()
    asked = "async (charts) => { const { beside } = await import('/page/app/draw/spread.js');"
    placed = page.evaluate(asked + " return charts.map((each) => beside(each, 0, 600, 6)); }", charts)
    kept = 0
    for verticals, begins in zip(charts, placed, strict=True):
        words = [(at, at + each["size"]) for at, each in zip(begins, verticals, strict=True) if at is not None]
        kept += len(words)
        assert all(left >= 0 and right <= 600 for left, right in words)
        assert all(not left <= each["x"] <= right for left, right in words for each in verticals)
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(words)))
        # who stands alone has a place wherever its words fit on one of both sides
        if len(verticals) == 1:
            x, size = verticals[0]["x"], verticals[0]["size"]
            assert (begins[0] is None) == (x < size + 12 and x + size + 12 > 600)
    assert kept > 2_000
