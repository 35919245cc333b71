"""What the page says when not all is as it should be: who may not look, a broker that is gone, one that is new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Route

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.web.page.axe import axe_source, violations
from tests.web.page.conftest import PHONE, Open, Shown, settings
from tieline.conf.schema import Auth, Rule
from tieline.core.ports import Login
from tieline.wire.packets import Publish

HOSTILE = '"><img src=x onerror="window.hurt=1"><script>window.hurt=2</script>`$(reboot)`'


class Users:
    """Three users with one password."""

    def authenticate(self, login: Login) -> str | None:
        return login.username if login.password == "Kärcher".encode() else None


RULES = (
    Rule(filter="$SYS/#", allow=("read", "subscribe"), users=("operator", "visitor")),
    Rule(filter="$SYS/broker/tieline/ask", allow=("write",), users=("operator",)),
    Rule(filter="public/#", allow="all"),
)


@pytest.fixture(scope="module")
def alone() -> Iterator[Shown]:
    shown = Shown(settings("kitchen"))
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Shown]:
    shown = Shown(settings("vault", rule=RULES, auth=Auth(failures="none")), authenticator=Users())
    yield shown
    shown.close()


def test_a_new_broker_says_how_to_begin(alone: Shown, open_eye: Open) -> None:
    eye = open_eye(alone.url)
    page = eye.look("overview")
    page.wait_for_selector("text=Nobody has said anything yet")
    port = alone.broker.port
    commands = page.locator(".command code").all_inner_texts()
    assert commands == [
        f"tieline sub -p {port} -t 'hello/#' -v",
        f'tieline pub -p {port} -t hello/world -m "good morning"',
    ]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".command button").first.click()
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == commands[0]
    page.wait_for_selector("text=not kept: no data directory")
    assert violations(page, axe_source()) == []
    eye.check()


def test_a_broker_alone_says_how_to_join_and_that_there_is_nothing_to_plan(alone: Shown, open_eye: Open) -> None:
    eye = open_eye(alone.url)
    page = eye.look("network")
    assert "--join peer://" in page.locator(".command code").last.inner_text()
    eye.look("plan")
    page.wait_for_selector("text=One broker needs no plan")
    assert page.locator("text=Grid").count() == 0, "without an event type there is no such view"
    eye.look("grid")
    page.wait_for_selector("text=Declare an event type")
    page.keyboard.press("1")
    eye.await_view("overview")
    page.keyboard.press("5")
    assert page.locator("main").get_attribute("data-view") == "overview"
    eye.check()


def test_users_sign_in_and_out(guarded: Shown, open_eye: Open) -> None:
    eye = open_eye(guarded.url, theme="dark", size=PHONE)
    page = eye.page
    page.goto(eye.url)
    page.wait_for_selector("h1:text('Sign in to vault')")
    assert violations(page, axe_source()) == []
    page.fill("[name=user]", "operator")
    page.fill("[name=password]", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert] >> text=User or password is wrong.")
    assert violations(page, axe_source()) == []
    page.fill("[name=password]", "Kärcher")
    page.keyboard.press("Enter")
    eye.await_view("overview")
    assert page.evaluate("Object.values({...localStorage, ...sessionStorage}).join().includes('cher')") is False
    assert page.evaluate("document.cookie") == ""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("3")
    page.wait_for_selector(".sessions-card input[type=search]")
    page.get_by_role("button", name="Who looks").click()
    page.wait_for_selector(".menu >> text=operator")
    page.keyboard.press("Escape")
    page.wait_for_selector(".menu", state="detached")
    page.get_by_role("button", name="Who looks").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("h1:text('Sign in to vault')")
    # what a browser says of an answer of 401 is the browser's word, and the only one
    assert {said.split(":")[1].strip() for said in eye.said} == {"Failed to load resource"}


def test_who_may_not_see_is_told_the_rule(guarded: Shown, open_eye: Open) -> None:
    eye = open_eye(guarded.url)
    page = eye.page
    page.goto(eye.url)
    page.fill("[name=user]", "stranger")
    page.fill("[name=password]", "Kärcher")
    page.click("button.primary")
    page.wait_for_selector("h1:text('stranger may not see this broker')")
    assert "rule" in page.locator("[role=alert]").inner_text()
    assert violations(page, axe_source()) == []
    page.click("text=Sign in as somebody else")
    page.wait_for_selector("h1:text('Sign in to vault')")


def test_who_may_see_but_not_ask_is_told_so_in_place(guarded: Shown, open_eye: Open) -> None:
    eye = open_eye(guarded.url)
    page = eye.page
    page.goto(f"{eye.url}#/clients")
    page.fill("[name=user]", "visitor")
    page.fill("[name=password]", "Kärcher")
    page.click("button.primary")
    eye.await_view("clients")
    page.wait_for_selector("text=This user may not ask the broker")
    page.keyboard.press("1")
    page.wait_for_selector(".tile, .first")


def test_a_broker_that_is_killed_is_missed_and_found_again(open_eye: Open, tmp_path: Path) -> None:
    first = Shown(settings("control"))
    port = first.port
    try:
        with dial(first.broker.urls[0], "reader") as client:
            client.subscribe("x")
            client.send(Publish(topic="x", payload=b"1"))
            eye = open_eye(first.url)
            page = eye.look("overview")
            page.wait_for_selector(".fresh >> text=live")
            page.wait_for_selector(".tiles")
    finally:
        first.close()
    page.wait_for_selector(".banner >> text=No connection to control since")
    assert page.locator("main.stale .tiles").count() == 1, "what was known stays, and is seen to be old"
    assert violations(page, axe_source()) == []
    second = Shown(settings("control", http_port=port))
    try:
        page.locator(".banner button:text('Try now')").click()
        page.wait_for_selector(".banner", state="detached")
        page.wait_for_selector(".fresh >> text=live")
        assert page.locator("main.stale").count() == 0
        wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen
    finally:
        second.close()


def test_a_broker_of_another_version_asks_for_a_reload(open_eye: Open) -> None:
    first = Shown(settings("control"))
    port = first.port
    eye = open_eye(first.url)
    page = eye.look("overview")
    first.close()

    def newer(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "build": "of-tomorrow"})

    # the broker that comes back has other files, as after an upgrade
    page.route("**/page/config.json", newer)
    second = Shown(settings("control", http_port=port))
    try:
        page.wait_for_selector(".banner >> text=runs another version now")
        page.get_by_role("button", name="Reload").click()
        eye.await_view("overview")
        page.wait_for_selector(".fresh >> text=live")
        assert page.locator(".banner").count() == 0
    finally:
        second.close()


def test_what_clients_are_called_stays_text(open_eye: Open) -> None:
    shown = Shown(settings("control"))
    try:
        with dial(shown.broker.urls[0], HOSTILE) as hostile, dial(shown.broker.urls[0], "speaker") as speaker:
            hostile.subscribe(f"a/{HOSTILE}/#")
            speaker.send(*[Publish(topic=f"a/{HOSTILE}/b", payload=b"x" * 60_000)] * 200)
            eye = open_eye(shown.url)
            page = eye.look("overview")
            page.keyboard.press("3")
            eye.await_view("clients")
            page.get_by_role("group", name="Which sessions").locator("button").last.click()
            row = page.locator(".sessions-card tbody button", has_text="onerror")
            row.click()
            page.wait_for_selector("dialog .steps")
            shell = page.locator("dialog .command code").inner_text()
            assert shell == "tieline why '" + HOSTILE.replace("'", "'\\''") + "'"
            page.keyboard.press("Escape")
            page.wait_for_selector("dialog", state="detached")
            page.keyboard.press("2")
            eye.await_view("messages")
            page.keyboard.press("/")
            page.fill("[name=topic]", f"a/{HOSTILE}/b")
            page.keyboard.press("Enter")
            page.wait_for_selector("dialog tbody >> text=onerror")
            page.wait_for_timeout(500)
            assert page.evaluate("window.hurt") is None
            assert page.locator("img").count() == 0
            eye.check()
    finally:
        shown.close()


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("meter-7", "meter-7"),
        ("a b", "'a b'"),
        ("it's", "'it'\\''s'"),
        ("$(reboot)", "'$(reboot)'"),
        ("--forget", "'--forget'"),
        ("", "''"),
        ("a\nreboot\n", "$'a\\u000areboot\\u000a'"),
        ("\u0007'\\", "$'\\u0007\\'\\\\'"),
    ],
)
def test_what_is_copied_into_a_shell_is_one_word(alone: Shown, open_eye: Open, word: str, written: str) -> None:
    eye = open_eye(alone.url)
    eye.page.goto(eye.url)
    load = f'async () => (await import("{alone.url}app/dialogs/quoting.js")).quoted({json.dumps(word)})'
    until(lambda: eye.page.evaluate("document.readyState") == "complete", "the page is there")
    assert eye.page.evaluate(load) == written
