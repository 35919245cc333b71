"""A live broker under overload: every message that was published is received, waits, or has a named end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.kits.world import configured
from tieline.conf.schema import Class, Listener, Settings
from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Publish
from tieline.wire.reason import Reason

CLASSES = tuple(Class(name=f"class-{level}", filter=f"{level}/#", level=level) for level in range(4))
PAYLOAD = bytes(4_000)
ROUNDS = 120


def _settings(data: Path | None) -> Settings:
    made = configured(queue_messages=300, queue_bytes="none")
    place = None if data is None else str(data)
    return msgspec.structs.replace(made, class_=CLASSES, listener=(Listener(url="tcp://127.0.0.1:0"),), data=place)


def _flood(url: str) -> dict[int, int]:
    """Publish to every class with QoS 0 and 1; how many messages the broker took, by QoS."""
    taken = {0: 0, 1: 0}
    with dial(url, "publisher") as publisher:
        for number in range(ROUNDS):
            level = number % 4
            publisher.send(*[Publish(topic=f"{level}/x", payload=PAYLOAD)] * 10)
            taken[0] += 10
            publisher.send(Publish(topic=f"{level}/y", payload=PAYLOAD, qos=1, packet_id=number + 1))
            taken[1] += publisher.expect(Puback).reason is not Reason.QUOTA_EXCEEDED
    return taken


def _waiting(core: Broker) -> int:
    return sum(session.queue.messages for session in core.sessions.values())


@pytest.mark.parametrize("is_durable", [False, True])
def test_nothing_is_lost_without_a_name(is_durable: bool, tmp_path: Path) -> None:
    with BrokerThread(_settings(tmp_path if is_durable else None)) as broker:
        url = broker.urls[0]
        readers = {name: dial(url, name) for name in ("fast", "slow", "gone")}
        with dial(url, "away", properties={"session_expiry_interval": 600}) as away:
            away.subscribe("#", 1)
        for qos, reader in enumerate(readers.values()):
            reader.subscribe("#", min(qos, 1))
        until(lambda: broker.ask(lambda core: core.sessions["away"].connection is None), "it has gone")
        taken = _flood(url)
        owed = 4 * (taken[0] + taken[1])

        def accounted(core: Broker) -> bool:
            drops = core.account.drops
            lost = sum(drops.values()) - drops[Drop.REFUSED] - drops[Drop.UNCONFIRMED]
            return owed == core.account.publishes_out + _waiting(core) + lost

        assert broker.ask(accounted), broker.ask(lambda core: (_waiting(core), core.account.drops))
        assert broker.ask(lambda core: core.account.drops.keys()) >= {Drop.OFFLINE, Drop.QUEUE_FULL}
        readers["gone"].close()
        until(lambda: broker.ask(lambda core: "gone" not in core.sessions), "its session has ended")
        assert broker.ask(accounted)
        for reader in readers.values():
            reader.close()
        until(lambda: broker.ask(lambda core: set(core.sessions)) == {"away"}, "all others have ended")
        assert broker.ask(accounted)
        by_level = broker.ask(lambda core: [drops.total() for drops in core.account.drops_by_level])
        assert sum(by_level) == broker.ask(lambda core: core.account.drops.total())
        assert all(by_level[:4]) and not by_level[4]
