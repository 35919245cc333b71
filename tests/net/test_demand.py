"""The question what a broker is asked to carry, on the management channel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.kits.world import World
from tests.net.test_manage import _Channel
from tieline.conf.paths import management_socket
from tieline.core.figures.demand import DemandError
from tieline.net.inquiry import answer_demand as answer
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Publish

#: Fixed header, length of the topic, the topic, packet id, payload.
_SIZE = 2 + 2 + 3 + 2 + 1


@pytest.fixture(name="broker")
def _broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(data=str(tmp_path), name="here", manage=True) as running:
        yield running


def ask(channel: _Channel, act: str, **fields: Any) -> dict[str, Any]:
    return channel.ask(json.dumps({"do": "demand", "act": act, **fields}).encode())


def test_a_count_is_begun_and_taken(broker: BrokerThread, tmp_path: Path) -> None:
    with dial(broker.urls[0], "p") as publisher, dial(broker.urls[0], "s") as subscriber:
        subscriber.subscribe("a/#")
        channel = _Channel(management_socket(str(tmp_path), "here"))
        number = ask(channel, "begin", seconds=30)["number"]
        for packet_id in (1, 2, 3):
            publisher.send(Publish(topic="a/b", payload=b"x", qos=1, packet_id=packet_id))
            publisher.expect(Puback)
        found = ask(channel, "take", number=number)
        assert found.pop("seconds") > 0
        assert found == {
            "unnamed": 0,
            "flows": [["p", "a/b", 1, 3, 3 * _SIZE]],
            "subscriptions": [["s", "a/#", "", False]],
            "more": False,
        }
        assert "there is no count" in ask(channel, "take", number=number)["error"]
        channel.close()


def test_an_asker_that_leaves_is_forgotten(broker: BrokerThread, tmp_path: Path) -> None:
    """Also by a broker in which nothing else happens: the loop is told of the timer."""
    channel = _Channel(management_socket(str(tmp_path), "here"))
    ask(channel, "begin", seconds=1)
    channel.close()
    assert broker.ask(lambda core: core.arrivals.is_watched)
    until(lambda: broker.ask(lambda core: not core.arrivals.is_watched), "the end of the count")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "act"),
        ({"act": "dance"}, "dance"),
        ({"act": "begin", "seconds": 0.5}, "seconds"),
        ({"act": "begin", "seconds": 3_601}, "seconds"),
        ({"act": "begin", "for": 3}, "for"),
        ({"act": "take", "number": "one"}, "number"),
        ({"act": "take", "number": 7}, "there is no count 7"),
    ],
)
def test_questions_that_cannot_be_meant(fields: dict[str, Any], said: str) -> None:
    world = World()
    with pytest.raises(DemandError, match=said):
        answer(world.broker, {"do": "demand", **fields}, world.now)
    assert not world.broker.arrivals.is_watched
