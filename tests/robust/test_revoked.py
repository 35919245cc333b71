"""Revoked means out: whatever was under way when users, passwords or rules changed is judged by the new ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kits.dial import Dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.auth.users import write_users
from tieline.conf.schema import Auth, Listener, Rule, Settings
from tieline.core.ports import Login
from tieline.net.auth.passwords import Passwords
from tieline.net.reload import reload
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Connack, Connect
from tieline.wire.reason import Reason


class House:
    """A broker with users, whose checks can be held up, and whose settings the test rewrites."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.users = write_users(directory / "users", ann="one", bob="two")
        #: Cleared, checks wait.
        self.checks = threading.Event()
        self.checks.set()
        self.waiting = threading.Semaphore(0)
        honest = Passwords.authenticate

        def slowly(passwords: Passwords, login: Login) -> str | None:
            self.waiting.release()
            self.checks.wait(PATIENCE_S)
            return honest(passwords, login)

        monkeypatch.setattr(Passwords, "authenticate", slowly)
        auth = Auth(password_file=str(self.users), remember_s=60.0, anonymous="nowhere")
        self.settings = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),), auth=auth)
        self.broker = BrokerThread(self.settings, reread=self.reread)
        self._calls = ThreadPoolExecutor(4)

    def reread(self) -> Settings:
        return self.settings

    def reload(self) -> Future[dict[str, Any]]:
        assert self.broker._loop is not None
        return asyncio.run_coroutine_threadsafe(reload(self.broker._server), self.broker._loop)

    def connect(self, user: str, password: str) -> Connack:
        with Dial(self.broker.urls[0]) as client:
            client.send(Connect(version=5, client_id=user, username=user, password=password.encode()))
            return client.expect(Connack)

    def begin(self, user: str, password: str) -> Future[Connack]:
        return self._calls.submit(self.connect, user, password)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House(tmp_path, monkeypatch)
    with made.broker:
        yield made
        made.checks.set()


def test_a_login_that_waits_while_its_user_is_removed_is_not_let_in(house: House) -> None:
    house.checks.clear()
    late = house.begin("ann", "one")
    assert house.waiting.acquire(timeout=PATIENCE_S)
    house.users.unlink()
    write_users(house.users, bob="two")
    assert house.reload().result(PATIENCE_S)["applied"]
    house.checks.set()
    assert late.result(PATIENCE_S).reason is Reason.BAD_USER_NAME_OR_PASSWORD
    # neither is the password remembered, nor does anybody stay who is no user
    assert house.connect("ann", "one").reason is Reason.BAD_USER_NAME_OR_PASSWORD
    assert house.connect("bob", "two").reason is Reason.SUCCESS
    house.reload().result(PATIENCE_S)
    until(lambda: house.broker.ask(lambda core: not core.connections), "nobody is left")


def test_a_login_that_waits_while_nothing_changes_is_let_in(house: House) -> None:
    house.checks.clear()
    late = house.begin("ann", "one")
    assert house.waiting.acquire(timeout=PATIENCE_S)
    assert house.reload().result(PATIENCE_S)["applied"]
    house.checks.set()
    assert late.result(PATIENCE_S).reason is Reason.SUCCESS


def test_of_two_reloads_at_once_the_newer_file_wins(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (
        msgspec.structs.replace(house.settings, rule=(Rule(filter=name, allow="all"),)) for name in ("old", "new")
    )
    house.settings = old
    begun, goes_on = threading.Event(), threading.Event()

    def slowly() -> Settings:
        found = house.settings
        begun.set()
        goes_on.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(house.broker._server, "reread", slowly)
    first = house.reload()
    assert begun.wait(PATIENCE_S)
    house.settings = new
    monkeypatch.setattr(house.broker._server, "reread", house.reread)
    second = house.reload()
    goes_on.set()
    assert first.result(PATIENCE_S)["applied"] and second.result(PATIENCE_S)["applied"]
    assert house.broker._server.settings.rule == new.rule
