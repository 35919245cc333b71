"""The pool of checks: bounded, fair by address, and every login gets one answer, whatever the authenticator does."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.kits.patience import PATIENCE_S
from tieline.access.gate import Outcome
from tieline.core.ports import Login, Refused
from tieline.net.auth.pool import BROKEN, BUSY, Pool
from tieline.wire.reason import Reason


def login(user: str, address: str = "192.0.2.1", password: bytes = b"pw") -> Login:
    return Login(client_id=user, username=user, password=password, listener="", peer=f"{address}:1")


class Held:
    """An authenticator that works only when it is let."""

    def __init__(self) -> None:
        self.turns = threading.Semaphore(0)
        self.begun: queue.SimpleQueue[str] = queue.SimpleQueue()

    def authenticate(self, login: Login) -> str | None:
        self.begun.put(login.username or "")
        assert self.turns.acquire(timeout=PATIENCE_S)
        if login.username == "broken":
            raise ValueError(f"{login.password!r} is in this text")
        return login.username if login.password == b"pw" else None


class Line:
    """A pool with one worker, and the answers in the order in which they came."""

    def __init__(self, *, workers: int = 1, waiting: int = 4, **more: Any) -> None:
        self.held = Held()
        self.answers: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()
        self.pool = Pool(self.held, workers=workers, waiting=waiting, deliver=self._deliver, **more)

    @staticmethod
    def _deliver(done: Callable[[Outcome], None], outcome: Outcome) -> None:
        done(outcome)

    def ask(self, user: str, address: str = "192.0.2.1", password: bytes = b"pw") -> Refused | None:
        return self.pool.check(login(user, address, password), lambda outcome: self.answers.put((user, outcome)))

    def answer(self) -> tuple[str, Outcome]:
        return self.answers.get(timeout=PATIENCE_S)

    def begun(self) -> str:
        return self.held.begun.get(timeout=PATIENCE_S)


@pytest.fixture
def line() -> Any:
    made: list[Line] = []

    def make(**more: Any) -> Line:
        made.append(Line(**more))
        return made[-1]

    yield make
    for each in made:
        each.pool.close()
        each.held.turns.release(1_000)
        each.pool.join(PATIENCE_S)


def test_right_and_wrong(line: Callable[..., Line]) -> None:
    here = line(workers=2)
    here.held.turns.release(2)
    assert here.ask("ann") is None and here.ask("bob", password=b"no") is None
    assert {here.answer(), here.answer()} == {("ann", "ann"), ("bob", None)}


def test_more_than_fit_are_refused_at_once_and_by_name(line: Callable[..., Line]) -> None:
    here = line(waiting=4)
    here.ask("first")
    assert here.begun() == "first"
    for number in range(4):
        assert here.ask(f"w{number}") is None
    for number in range(1_000):
        assert here.ask(f"over{number}") is BUSY
    assert BUSY.reason is Reason.SERVER_BUSY
    assert len(here.pool) == 4 and here.pool.turned_away == 1_000
    here.held.turns.release(5)
    assert [here.answer()[0] for _ in range(5)] == ["first", "w0", "w1", "w2", "w3"]


def test_one_address_waits_behind_itself(line: Callable[..., Line]) -> None:
    here = line(waiting=10)
    here.ask("first")
    here.begun()
    for number in range(5):
        here.ask(f"flood{number}", "6.6.6.6")
    here.ask("guest", "10.0.0.1")
    here.held.turns.release(3)
    assert [here.answer()[0] for _ in range(3)] == ["first", "flood0", "guest"]


def test_a_full_line_makes_room_for_another_address(line: Callable[..., Line]) -> None:
    here = line(waiting=3)
    here.ask("first")
    here.begun()
    for number in range(3):
        here.ask(f"flood{number}", "6.6.6.6")
    assert here.ask("guest", "10.0.0.1") is None
    assert here.answer() == ("flood2", BUSY), "the newest of the longest line"
    assert here.ask("flood3", "6.6.6.6") is BUSY, "who has the longest line does not push others out"
    here.held.turns.release(4)
    assert [here.answer()[0] for _ in range(4)] == ["first", "flood0", "guest", "flood1"]


def test_an_error_is_a_refusal_and_the_pool_goes_on(
    line: Callable[..., Line], caplog: pytest.LogCaptureFixture
) -> None:
    here = line()
    here.held.turns.release(2)
    here.ask("broken", password=b"top secret")
    here.ask("ann")
    assert here.answer() == ("broken", BROKEN) and here.answer() == ("ann", "ann")
    assert "could not be checked: ValueError" in caplog.text and "top secret" not in caplog.text


def test_what_has_become_hopeless_is_not_checked(line: Callable[..., Line]) -> None:
    why = Refused("enough", Reason.CONNECTION_RATE_EXCEEDED)
    here = line(is_hopeless=lambda asked: why if asked.username == "eve" else None)
    here.ask("eve")
    assert here.answer() == ("eve", why)
    assert here.held.begun.empty()


def test_a_retired_pool_answers_what_waits_and_ends(line: Callable[..., Line]) -> None:
    here = line()
    here.ask("one")
    here.ask("two")
    here.pool.retire()
    here.held.turns.release(2)
    assert [here.answer()[0] for _ in range(2)] == ["one", "two"]
    here.pool.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in here.pool._threads)


def test_a_loop_that_is_gone_does_not_kill_a_worker() -> None:
    held = Held()
    gone = threading.Event()

    def deliver(*_: object) -> None:
        gone.set()
        raise RuntimeError("Event loop is closed")

    pool = Pool(held, workers=1, waiting=4, deliver=deliver)
    held.turns.release(2)
    pool.check(login("a"), lambda _: None)
    assert gone.wait(PATIENCE_S)
    gone.clear()
    pool.check(login("b"), lambda _: None)
    assert gone.wait(PATIENCE_S), "the thread is still there"
    pool.close()
    pool.join(PATIENCE_S)
