"""The gate: certificate, password or nobody; pending checks, refusals with names, and no memory of secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kits.check_access import Decide, check_access
from tieline.access.gate import Gate, Outcome
from tieline.conf.schema import Auth, Rule, Settings
from tieline.core.broker import Broker
from tieline.core.ports import Access, Allowed, Login, Pending, Refused, Verdict
from tieline.net.auth.pool import Remembered
from tieline.wire.reason import Reason

LOCAL = "tcp://127.0.0.1:1883"
LAN = "tcp://192.0.2.1:1883"


class Checker:
    """Knows passwords, and says so when the test wants."""

    def __init__(self, users: dict[str, bytes], refuses: Refused | None = None) -> None:
        self.users = users
        self.refuses = refuses
        self.waiting: list[tuple[Login, Callable[[Outcome], None]]] = []
        self.checked = 0

    def __call__(self, login: Login, done: Callable[[Outcome], None]) -> Refused | None:
        if self.refuses is None:
            self.waiting.append((login, done))
        return self.refuses

    def work(self) -> None:
        while self.waiting:
            login, done = self.waiting.pop(0)
            self.checked += 1
            name = login.username or ""
            done(name if login.password is not None and self.users.get(name) == login.password else None)


class Scene:
    def __init__(self, *, users: dict[str, bytes] | None = None, remember_s: float = 0.0, **auth: Any) -> None:
        self.now = 0.0
        self.checker = Checker(users or {}) if users is not None else None
        self.verdicts: dict[int, Allowed | Refused] = {}
        self.gate = Gate(
            Settings(auth=Auth(**auth)),
            check=self.checker,
            memory=Remembered(remember_s),
            decided=self.verdicts.__setitem__,
            clock=lambda: self.now,
        )

    def connect(
        self, user: str | None = None, password: bytes | None = None, *, listener: str = LOCAL, **more: Any
    ) -> Allowed | Refused:
        login = Login(client_id="c", username=user, password=password, listener=listener, peer="192.0.2.9:1", **more)
        verdict: Verdict = self.gate.connect(login)
        if isinstance(verdict, Pending):
            assert self.checker is not None
            self.checker.work()
            return self.verdicts.pop(verdict.token)
        return verdict


@pytest.mark.parametrize(
    ("anonymous", "listener", "is_let_in"),
    [
        ("loopback", LOCAL, True),
        ("loopback", LAN, False),
        ("loopback", "tcp://0.0.0.0:1883", False),
        ("loopback", "", False),
        ("nowhere", LOCAL, False),
        ("everywhere", LAN, True),
    ],
)
def test_nobody_in_particular_is_let_in_where_that_is_configured(
    anonymous: str, listener: str, is_let_in: bool
) -> None:
    verdict = Scene(anonymous=anonymous).connect(listener=listener)
    assert isinstance(verdict, Allowed) == is_let_in
    if isinstance(verdict, Refused):
        assert verdict.reason is Reason.NOT_AUTHORIZED and f'auth.anonymous = "{anonymous}"' in verdict.rule
    else:
        assert verdict.is_anonymous


def test_a_user_name_that_nothing_can_check_is_nobody() -> None:
    verdict = Scene().connect("root", b"x")
    assert isinstance(verdict, Allowed) and verdict.is_anonymous and verdict.user is None
    refused = Scene().connect("root", b"x", listener=LAN)
    assert isinstance(refused, Refused) and "no auth.password_file is set" in refused.rule


def test_a_password_is_checked_also_on_loopback() -> None:
    scene = Scene(users={"ann": b"right"})
    assert scene.connect("ann", b"right") == Allowed("its password", user="ann")
    for user, password in (("ann", b"wrong"), ("ann", None), ("eve", b"right"), (None, b"right"), ("", b"")):
        verdict = scene.connect(user, password)
        assert isinstance(verdict, Refused) and verdict.reason is Reason.BAD_USER_NAME_OR_PASSWORD
        assert verdict.rule == "the user name or the password is wrong", "not which of them"
    assert isinstance(scene.connect(), Allowed), "who names nobody is nobody"


def test_a_certificate_names_the_user_whatever_else_is_said() -> None:
    scene = Scene(users={"ann": b"right"}, anonymous="nowhere")
    verdict = scene.connect("ann", b"wrong", listener=LAN, certificate_user="bob")
    assert verdict == Allowed("the client's certificate", user="bob")
    nameless = scene.connect(listener=LAN, certificate_user="")
    assert isinstance(nameless, Refused) and "names no user" in nameless.rule


def test_too_many_failures_are_refused_unheard_with_a_name_and_a_counter() -> None:
    scene = Scene(users={"ann": b"right"}, failures=3)
    assert scene.checker is not None
    for _ in range(3):
        scene.connect("ann", b"wrong")
    checked = scene.checker.checked
    verdict = scene.connect("ann", b"right")
    assert isinstance(verdict, Refused) and verdict.reason is Reason.CONNECTION_RATE_EXCEEDED
    assert verdict.rule == "too many failed logins from this address"
    assert scene.checker.checked == checked and scene.gate.throttled == 1
    scene.now += 61
    assert isinstance(scene.connect("ann", b"right"), Allowed)


def test_a_password_that_was_right_is_recognised_for_a_while_and_wrong_ones_never() -> None:
    scene = Scene(users={"ann": b"right"}, remember_s=10.0, failures=2)
    assert scene.checker is not None
    scene.connect("ann", b"right")
    assert isinstance(scene.connect("ann", b"right"), Allowed) and scene.checker.checked == 1
    assert isinstance(scene.connect("ann", b"wrong"), Refused) and scene.checker.checked == 2
    scene.connect("ann", b"wrong")
    assert isinstance(scene.connect("ann", b"right"), Allowed), "known, so an attack does not concern it"
    scene.now += 61
    assert isinstance(scene.connect("ann", b"right"), Allowed) and scene.checker.checked == 4


def test_a_pool_that_is_full_is_a_refusal_at_once() -> None:
    scene = Scene(users={})
    assert scene.checker is not None
    scene.checker.refuses = Refused("busy", Reason.SERVER_BUSY)
    assert scene.connect("ann", b"x") == scene.checker.refuses
    assert scene.verdicts == {}


def test_other_settings_forget_what_was_remembered() -> None:
    scene = Scene(users={"ann": b"right"}, remember_s=10.0)
    scene.connect("ann", b"right")
    scene.gate.renew(Settings(rule=(Rule(allow="all", filter="a"),)), scene.checker)
    assert scene.checker is not None
    scene.checker.users = {}
    assert isinstance(scene.connect("ann", b"right"), Refused)
    assert not scene.gate.is_open and not scene.gate.may("read", "ann", "c", "b")


def test_the_conformance_kit_passes() -> None:
    def make() -> tuple[Access, Decide]:
        due: list[tuple[int, Allowed | Refused]] = []
        checker = Checker({"alice": b"secret"})
        rules = (Rule(allow="all", filter="open/#"),)
        gate = Gate(
            Settings(rule=rules, auth=Auth(anonymous="nowhere")),
            check=checker,
            memory=Remembered(0.0),
            decided=lambda *verdict: due.append(verdict),
            clock=lambda: 0.0,
        )

        def decide(broker: Broker, now: float) -> None:
            checker.work()
            while due:
                broker.decided(*due.pop(0), now)

        return gate, decide

    check_access(make)


def test_a_login_that_waits_while_users_change_is_judged_by_the_new_ones() -> None:
    scene = Scene(users={"ann": b"right", "bob": b"old"}, remember_s=60.0, failures=1)
    assert scene.checker is not None
    before, after = scene.checker, Checker({"bob": b"new"})
    tokens: dict[tuple[str, bytes], int] = {}
    for name, password in (("ann", b"right"), ("bob", b"old"), ("bob", b"new")):
        login = Login(client_id="c", username=name, password=password, listener=LOCAL, peer=f"{len(tokens)}:1")
        verdict = scene.gate.connect(login)
        assert isinstance(verdict, Pending)
        tokens[name, password] = verdict.token
    scene.gate.renew(Settings(auth=Auth(failures=1)), after)
    before.work()
    assert not scene.verdicts, "what the removed users would have said is worth nothing"
    after.work()
    found = {who: isinstance(scene.verdicts[token], Allowed) for who, token in tokens.items()}
    assert found == {("ann", b"right"): False, ("bob", b"old"): False, ("bob", b"new"): True}
    scene.checker = after
    assert isinstance(scene.connect("ann", b"right"), Refused), "nor is it remembered"


def test_a_login_that_waits_while_passwords_are_given_up_is_nobody_or_nowhere() -> None:
    scene = Scene(users={"ann": b"right"})
    login = Login(client_id="c", username="ann", password=b"right", listener=LAN, peer="192.0.2.9:1")
    verdict = scene.gate.connect(login)
    assert isinstance(verdict, Pending) and scene.checker is not None
    scene.gate.renew(Settings(), None)
    scene.checker.work()
    assert isinstance(scene.verdicts[verdict.token], Refused)


@pytest.mark.parametrize("answer", ["", b"root", True, 0])
def test_an_authenticator_that_names_nobody_lets_nobody_in(answer: Any) -> None:
    scene = Scene(users={})
    verdict = scene.gate.connect(
        Login(client_id="c", username="root", password=b"x", listener=LOCAL, peer="192.0.2.9:1")
    )
    assert isinstance(verdict, Pending) and scene.checker is not None
    (_, done), *_ = scene.checker.waiting
    done(answer)
    refused = scene.verdicts[verdict.token]
    assert isinstance(refused, Refused) and refused.reason is Reason.BAD_USER_NAME_OR_PASSWORD


def test_an_empty_name_is_nobodys() -> None:
    login = Login(client_id="c", username="root", password=b"x", listener=LOCAL, peer="192.0.2.9:1")
    assert Allowed(user="").name_of(login) is None
    assert Allowed(user="ann").name_of(login) == "ann"
    assert Allowed().name_of(login) == "root"
    assert Allowed(user="ann", is_anonymous=True).name_of(login) is None
