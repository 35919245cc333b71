"""Who is let in at the HTTP door, and what they see: the broker's users and rules."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from tieline.conf.schema import Auth, Rule, Settings
from tieline.log.record import Occurrence
from tieline.net.auth import passwords
from tieline.net.logserver.visitors import EVENTS, READERS, Turned, Visitor, Visitors

LISTENER = "tcp://127.0.0.1:9884"
RULES = (
    Rule(filter="secret/#", deny="all"),
    Rule(filter="#", allow=("read", "subscribe"), users=("alice",)),
    Rule(filter="$SYS/#", allow="all", users=("alice",)),
    Rule(filter="devices/%u/#", allow=("read",), users=("*",)),
    Rule(filter="clients/%c/#", allow=("read",), users=("*",)),
    Rule(filter="public", allow=("read",), users=("-",)),
)


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def asking(authorization: str | None, host: str | None) -> dict[str, Any]:
    """What a server knows of a request."""
    given = [(b"authorization", authorization), (b"host", host)]
    headers = [(name, value.encode("latin-1")) for name, value in given if value is not None]
    return {"type": "http", "headers": headers, "client": ("127.0.0.1", 5)}


def admit(settings: Settings, authorization: str | None, host: str | None = "localhost:1") -> Visitor | Turned:
    async def ask() -> Visitor | Turned:
        visitors = Visitors(settings, LISTENER)
        try:
            return await visitors.admit(asking(authorization, host))
        finally:
            visitors.close()

    return asyncio.run(ask())


@pytest.fixture(name="users", scope="module")
def _users(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("auth") / "users"
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    for user, password in (("alice", b"a:b"), ("bob", b"x")):
        passwords.put(path, user, password, quick)
    return str(path)


def with_users(users: str, *rules: Rule) -> Settings:
    return Settings(auth=Auth(password_file=users), rule=rules)


def test_the_right_password_is_a_user(users: str) -> None:
    found = admit(with_users(users), basic("alice:a:b"))
    assert isinstance(found, Visitor) and found.user == "alice" and found.is_open


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic !!!",
        basic("alice"),
        basic(":x"),
        basic("alice:wrong"),
        basic("nobody:x"),
        "Bearer " + base64.b64encode(b"alice:a:b").decode(),
        "Basic " + base64.b64encode(b"\xff:x").decode(),
    ],
)
def test_anything_else_is_nobody(users: str, header: str | None) -> None:
    found = admit(with_users(users), header)
    assert isinstance(found, Turned) and found.status == 401


def test_who_keeps_failing_is_not_heard_any_more(users: str) -> None:
    settings = Settings(auth=Auth(password_file=users, failures=2))

    async def ask() -> list[int]:
        visitors = Visitors(settings, LISTENER)
        try:
            found = [await visitors.admit(asking(basic("bob:wrong"), "localhost")) for _ in range(6)]
            return [each.status for each in found if isinstance(each, Turned)]
        finally:
            visitors.close()

    statuses = asyncio.run(ask())
    assert statuses[:2] == [401, 401] and statuses[-2:] == [429, 429]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9884", "127.0.0.1:9884", "127.8.8.8", "[::1]:9884", "[::1]"])
def test_without_users_this_machine_is_nobody_in_particular(host: str) -> None:
    found = admit(Settings(), None, host)
    assert isinstance(found, Visitor) and found.user is None


@pytest.mark.parametrize(
    "host", [None, "", "example.org", "127.0.0.1.example.org:9884", "localhost.example.org", "[", ":"]
)
def test_a_page_that_names_this_machine_otherwise_gets_nothing(host: str | None) -> None:
    found = admit(Settings(), None, host)
    assert isinstance(found, Turned) and found.status == 421


def test_rules_decide_what_is_seen(users: str) -> None:
    settings = with_users(users, *RULES)
    alice, bob = admit(settings, basic("alice:a:b")), admit(settings, basic("bob:x"))
    nobody = admit(Settings(rule=RULES), None)
    assert isinstance(alice, Visitor) and isinstance(bob, Visitor) and isinstance(nobody, Visitor)
    seen = {
        "grid/1": (True, False, False),
        "secret/1": (False, False, False),
        "devices/bob/1": (True, True, False),
        "devices/alice/1": (True, False, False),
        "clients//1": (True, False, False),
        "public": (True, False, True),
    }
    assert {topic: (alice.record(topic), bob.record(topic), nobody.record(topic)) for topic in seen} == seen


def test_events_need_leave_of_their_own_and_that_for_their_topic(users: str) -> None:
    settings = with_users(users, *RULES)
    alice, bob = admit(settings, basic("alice:a:b")), admit(settings, basic("bob:x"))
    assert isinstance(alice, Visitor) and isinstance(bob, Visitor)
    assert alice.occurrence(Occurrence(1, "connect", "x"))
    assert alice.occurrence(Occurrence(1, "drop", "x", "grid/1"))
    assert not alice.occurrence(Occurrence(1, "drop", "x", "secret/1"))
    assert alice.occurrence(Occurrence(1, "subscribe", "x", "grid/#"))
    assert alice.occurrence(Occurrence(1, "subscribe", "x", "$share/g/$where/a%3E1/grid/#"))
    assert not alice.occurrence(Occurrence(1, "subscribe", "x", "secret/#"))
    assert not alice.occurrence(Occurrence(1, "unsubscribe", "x", "$where/"))
    for kind in ("connect", "drop", "subscribe"):
        assert not bob.occurrence(Occurrence(1, kind, "x", "devices/bob/1" if kind != "connect" else ""))


def test_positions_of_readers_are_topics_too(users: str) -> None:
    rules = (
        Rule(filter=READERS + "spark", allow=("write", "read"), users=("bob",)),
        Rule(filter=EVENTS, allow=("read",), users=("alice",)),
    )
    settings = with_users(users, *rules)
    alice, bob = admit(settings, basic("alice:a:b")), admit(settings, basic("bob:x"))
    assert isinstance(alice, Visitor) and isinstance(bob, Visitor)
    assert bob.why_not_move("spark") is None and bob.sees_reader("spark")
    assert bob.why_not_move("backup") == "no rule allows to publish to this" and not bob.sees_reader("backup")
    assert alice.why_not_move("spark") is not None and not alice.sees_reader("spark")
    free = admit(with_users(users), basic("bob:x"))
    assert isinstance(free, Visitor) and free.why_not_move("anything") is None
    assert free.occurrence(Occurrence(1, "drop", "x")) and free.sees_size


def test_other_users_and_rules_from_now_on(users: str, tmp_path: Path) -> None:
    async def ask() -> list[object]:
        visitors = Visitors(with_users(users), LISTENER)
        before = await visitors.admit(asking(basic("bob:x"), None))
        other = tmp_path / "users"
        passwords.put(other, "carol", b"c", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        visitors.renew(with_users(str(other), *RULES))
        after = await visitors.admit(asking(basic("bob:x"), None))
        carol = await visitors.admit(asking(basic("carol:c"), None))
        visitors.close()
        return [before, after, carol]

    before, after, carol = asyncio.run(ask())
    assert isinstance(before, Visitor) and isinstance(after, Turned)
    assert isinstance(carol, Visitor) and not carol.record("grid/1") and carol.record("devices/carol/1")
