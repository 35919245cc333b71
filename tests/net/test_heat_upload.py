"""Heat tables over the management channel: in pieces, whole or not at all, and gone when their time is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_manage import _Channel
from tieline.conf.paths import management_socket
from tieline.core.broker import Broker
from tieline.core.routing.heat_table import HeatError
from tieline.net.heat_upload import MOST_PIECE, HeatUpload, period_of, pieces
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def broker(data: Path) -> Iterator[BrokerThread]:
    with BrokerThread(data=str(data), name="here", manage=True) as running:
        yield running


@pytest.fixture
def channel(broker: BrokerThread, data: Path) -> Iterator[_Channel]:
    opened = _Channel(management_socket(str(data), "here"))
    yield opened
    assert ask(opened, "clear") == OWN
    opened.close()


def ask(channel: _Channel, act: str = "show", **fields: Any) -> dict[str, Any]:
    return channel.ask(json.dumps({"do": "heat", "act": act, **fields}).encode())


OWN = {"source": "own", "entries": 0, "period_s": 0.0, "left_s": 0.0, "hottest": []}


def heat_of(broker: BrokerThread, topic: bytes) -> float:
    return broker.ask(lambda core: core.routes.known[topic].heat)


def test_put_show_clear(broker: BrokerThread, channel: _Channel) -> None:
    assert ask(channel) == OWN
    given = ask(channel, "put", topics={"a/b": 7, "c/#": 2.5}, period="2m")
    assert 0 < given.pop("left_s") <= 120
    assert given == {"source": "given", "entries": 2, "period_s": 120, "hottest": [["a/b", 7], ["c/#", 2.5]]}
    with dial(broker.urls[0], "reader") as client:
        client.subscribe("#")
        client.send(Publish(topic="a/b"), Publish(topic="d"))
        client.expect(Publish)
        client.expect(Publish)
        assert (heat_of(broker, b"a/b"), heat_of(broker, b"d")) == (7, 1)
        top = channel.ask(b'{"do": "top"}')
        assert top["heat"]["source"] == "given" and top["heat"]["entries"] == 2 and top["heat"]["left_s"] > 0
        assert top["hottest"] == [["a/b", 7, "given"], ["d", 1, "own"]]
        assert ask(channel, "clear") == OWN
        client.send(Publish(topic="a/b"))
        client.expect(Publish)
        assert heat_of(broker, b"a/b") == 1
    assert ask(channel, "clear") == OWN, "what is gone may be taken back again"


def test_it_expires_by_itself(channel: _Channel) -> None:
    assert ask(channel, "put", topics={"a": 1}, period=1)["source"] == "given"
    until(lambda: ask(channel) == OWN, "the table has expired")


def test_a_large_table_comes_in_pieces_and_takes_effect_whole(broker: BrokerThread, channel: _Channel) -> None:
    ask(channel, "put", topics={"before": 1})
    for piece in range(3):
        topics = {f"plant/{piece}/{number}": number for number in range(1_000)}
        seen = ask(channel, "put", topics=topics, more=True)
        assert (seen["entries"], seen["hottest"]) == (1, []), "nothing has changed yet"
    assert ask(channel, "put", topics={"last": 5})["entries"] == 3_001
    assert ask(channel, "put", topics={"alone": 5})["entries"] == 1, "the next one begins anew"


def test_a_half_given_table_is_nobody_elses(channel: _Channel, data: Path) -> None:
    other = _Channel(management_socket(str(data), "here"))
    ask(other, "put", topics={"a": 1}, more=True)
    assert ask(channel, "put", topics={"b": 1})["hottest"] == [["b", 1]]
    other.close()
    assert ask(channel, "put", topics={"c": 1})["hottest"] == [["c", 1]]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"act": "dance"}, "invalid enum value"),
        ({"act": "put"}, "is empty"),
        ({"act": "put", "topics": {"a": "hot"}}, 'the heat of "a" is no number'),
        ({"act": "put", "topics": {"a": None}}, "is no number"),
        ({"act": "put", "topics": {"a": -1}}, "from zero up"),
        ({"act": "put", "topics": {"a": float("nan")}}, "one line of JSON"),
        ({"act": "put", "topics": {"a": float("inf")}}, "one line of JSON"),
        ({"act": "put", "topics": {"a": 10**400}}, ""),
        ({"act": "put", "topics": {"a/#/b": 1}}, "no topic filter"),
        ({"act": "put", "topics": ["a"]}, "expected `object`"),
        ({"act": "put", "topics": {"a": 1}, "period": 0}, "1 to 86,400 seconds"),
        ({"act": "put", "topics": {"a": 1}, "period": "soon"}, "the period is none"),
        ({"act": "put", "topics": {"a": 1}, "period": "90000s"}, "1 to 86,400 seconds"),
        ({"act": "put", "topics": {"a": 1}, "period": None}, "period"),
        ({"act": "put", "topics": {"a": 1}, "for": 5}, "unknown field"),
        ({"most": 1_001}, "<= 1000"),
    ],
)
def test_a_broken_table_changes_nothing(channel: _Channel, fields: dict[str, Any], said: str) -> None:
    ask(channel, "put", topics={"before": 1})
    answer = channel.ask(json.dumps({"do": "heat", **fields}).encode())
    assert list(answer) == ["error"] and said in answer["error"]
    assert ask(channel)["hottest"] == [["before", 1]]


def test_a_wrong_piece_ends_the_whole_table(channel: _Channel) -> None:
    ask(channel, "put", topics={"a": 1}, more=True)
    assert "error" in ask(channel, "put", topics={"b": -1}, more=True)
    assert ask(channel, "put", topics={"c": 1})["entries"] == 1, "a was forgotten together with b"
    ask(channel, "put", topics={"a": 1}, more=True)
    assert "error" in ask(channel, "put", topics={"b": 1}, period="never")
    assert ask(channel, "put", topics={"c": 1})["entries"] == 1


def test_nothing_is_said_twice(channel: _Channel) -> None:
    ask(channel, "put", topics={"a": 1}, more=True)
    assert ask(channel, "put", topics={"a": 2}) == {"error": '"a" is in the table twice'}


def test_others_get_their_turn_while_a_table_is_taken_in() -> None:
    turns = 0

    async def run() -> None:
        nonlocal turns
        upload = HeatUpload()
        work = asyncio.create_task(upload.add({f"t/{number}": 1 for number in range(2_000)}, 20))
        while not work.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(upload.take()) == 2_000

    asyncio.run(run())
    assert turns >= 7


def test_a_table_as_a_body() -> None:
    assert [*pieces(b'{"a": 1,\n "b": 2}')] == [{"a": 1, "b": 2}]
    assert [*pieces(b'{"a": 1}\n\n{"b": 2}\r\n')] == [{"a": 1}, {"b": 2}]
    large = b"\n".join(b'{"topic/%d": %d}' % (number, number) for number in range(10_000))
    assert len(large) > MOST_PIECE and len([*pieces(large)]) == 10_000
    with pytest.raises(HeatError, match="line 2 is no JSON object"):
        [*pieces(b'{"a": 1}\n[]')]
    with pytest.raises(HeatError, match="line 1 has more than 65,536 bytes"):
        [*pieces(b'{"a": 1, ' + b" " * MOST_PIECE + b'"b": 2}')]


def test_periods() -> None:
    assert [period_of(written) for written in (60, 1.5, "60", "90s", "2m", "1h")] == [60, 1.5, 60, 90, 120, 3_600]
    for written in ("", "nan", "1e9", "1d", "-5", 10**400, "s"):
        with pytest.raises(HeatError):
            period_of(written)


def test_a_broker_that_starts_has_only_its_own() -> None:
    assert Broker().heat_source.name == "own"
