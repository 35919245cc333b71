"""Content subscriptions of a live broker: the index is made anew in a thread, beside everything else."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import tieline
from tests.core.content import FILTER, PCC, content_settings, said
from tests.kits.dial import Dial, dial
from tests.kits.interpreted import replaces_methods
from tests.kits.patience import PATIENCE_S, until
from tieline.core.account import Account, Event
from tieline.match.index import adaptive
from tieline.match.index.adaptive import Rebuild
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription

_MANY = adaptive.SMALL_TO + 1_000
_STEP = 1_000


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Any:
    # compiling takes longer than a test should
    monkeypatch.setattr(adaptive, "has_numba", lambda: False)
    with BrokerThread(content_settings(), listen=["tcp://127.0.0.1:0"]) as running:
        yield running


def ask_for_many(client: Dial) -> None:
    for low in range(0, _MANY, _STEP):
        wishes = tuple(Subscription(filter=f"{FILTER}?{at}<=voltage<{at + 1}") for at in range(low, low + _STEP))
        client.send(Subscribe(packet_id=1, subscriptions=wishes))
        assert len(client.expect(Suback).reasons) == _STEP


def index_of(core: Any) -> Any:
    bucket = core.routes._buckets.get(FILTER)
    (table,) = bucket.conditionals.tables()
    return table.index


def test_an_index_that_grows_is_replaced_while_messages_go_on(broker: BrokerThread) -> None:
    with dial(broker.urls[0], "c") as client:
        ask_for_many(client)
        for voltage in (0.5, 2_500.5, _MANY - 0.5, _MANY + 0.5):
            client.send(Publish(topic=PCC, payload=said(voltage=voltage)))
        assert [client.expect(Publish).payload for _ in range(3)] == [
            said(voltage=voltage) for voltage in (0.5, 2_500.5, _MANY - 0.5)
        ]
        until(lambda: broker.ask(lambda core: index_of(core).backend == "numpy"), "the index has been replaced")
        client.send(Publish(topic=PCC, payload=said(voltage=_MANY - 0.5)))
        client.expect(Publish, payload=said(voltage=_MANY - 0.5))


@replaces_methods
def test_a_rebuild_that_fails_is_told_and_changes_nothing(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Rebuild) -> None:
        raise MemoryError("not today")

    events: list[Event] = []
    monkeypatch.setattr(Rebuild, "run", fail)
    monkeypatch.setattr(Account, "tell", lambda _account, event: events.append(event))
    with dial(broker.urls[0], "c") as client:
        ask_for_many(client)
        until(lambda: any(event.kind == "index_rebuild_failed" for event in events), "the failure is told")
        client.send(Publish(topic=PCC, payload=said(voltage=_MANY - 0.5)))
        client.expect(Publish, payload=said(voltage=_MANY - 0.5))


def test_work_aside_reports_its_end_to_a_broker_that_is_still_there() -> None:
    async def program() -> list[Exception | None]:
        done: list[Exception | None] = []
        begun, may_end = threading.Event(), threading.Event()
        problem = ValueError("wrong")

        ended = asyncio.Semaphore(0)

        def note(error: Exception | None) -> None:
            done.append(error)
            ended.release()

        def fail() -> None:
            raise problem

        def take_long() -> None:
            begun.set()
            may_end.wait(PATIENCE_S)

        async with tieline.Broker(listen=["tcp://127.0.0.1:0"]) as broker:
            broker._do_aside(lambda: None, note)
            broker._do_aside(fail, note)
            async with asyncio.timeout(PATIENCE_S):
                await ended.acquire()
                await ended.acquire()
            assert done in ([None, problem], [problem, None])
            broker._do_aside(take_long, note)
            assert begun.wait(PATIENCE_S)
        may_end.set()
        # the thread has ended once the executor has nothing to do
        await asyncio.get_running_loop().shutdown_default_executor()
        await asyncio.sleep(0.01)
        return done

    assert len(asyncio.run(program())) == 2
