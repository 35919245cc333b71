"""Any broker through a spool: the reader as Spark uses it, with our broker and mosquitto, through ends and restarts."""

from __future__ import annotations

import pickle
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pyspark.sql.streaming.datasource import ReadMaxRows

from tests.kits.patience import PATIENCE_S
from tests.kits.patience import until as patiently
from tieline.pipeline.broker import BrokerError
from tieline.pipeline.foreign.options import read_options
from tieline.pipeline.foreign.stream import ForeignReader
from tieline.pipeline.options import OptionError
from tieline.pytest_plugin import BrokerThread

Need = Callable[[str], str]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def mosquitto(program: str, place: Path) -> Iterator[int]:
    """A mosquitto that queues as much as it must."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    place.mkdir()
    (place / "conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
    process = subprocess.Popen([program, "-c", str(place / "conf")], stderr=subprocess.DEVNULL)
    try:
        patiently(lambda: answers(port), "mosquitto listens")
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture(name="port", params=["tieline", "mosquitto"])
def _port(request: pytest.FixtureRequest, tmp_path: Path, need: Need) -> Iterator[int]:
    with ExitStack() as stack:
        if request.param == "tieline":
            yield stack.enter_context(BrokerThread()).port
        else:
            yield stack.enter_context(mosquitto(need("mosquitto"), tmp_path / "mosquitto"))


def publish(port: int, first: int, last: int) -> None:
    """Numbered messages, all of them acknowledged."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.connect("127.0.0.1", port)
    client.loop_start()
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("unit", "V")]
    for each in [client.publish(f"n/{n % 3}", b"%d" % n, qos=1, properties=properties) for n in range(first, last)]:
        each.wait_for_publish(PATIENCE_S)
    client.disconnect()
    client.loop_stop()


def reader(port: int, spool: Path, **more: str) -> ForeignReader:
    options = {
        "broker": f"mqtt://127.0.0.1:{port}",
        "topics": "n/#",
        "spool": str(spool),
        "patience": str(PATIENCE_S),
        **more,
    }
    return ForeignReader(read_options(options))


def rows(source: ForeignReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """What tasks read, each with its own copy of the reader."""
    found: list[dict[str, Any]] = []
    for part in source.partitions(start, end):
        copy, part = pickle.loads(pickle.dumps((source, part)))
        for batch in copy.read(part):
            found += batch.to_pylist()
    return found


def until(source: ForeignReader, start: dict[str, Any], count: int) -> dict[str, Any]:
    """The place behind so many messages, when they have come."""

    def end() -> dict[str, Any] | None:
        found = source.latestOffset(start, ReadMaxRows(count))
        return found if found["offset"] - start["offset"] >= count else None

    return patiently(end, f"{count} messages")


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [int(row["payload"]) for row in found]


def test_messages_arrive_and_survive_the_reader(port: int, tmp_path: Path) -> None:
    source = reader(port, tmp_path / "spool")
    start = source.initialOffset()
    publish(port, 0, 50)
    end = until(source, start, 50)
    found = rows(source, start, end)
    assert sorted(numbers(found)) == list(range(50)) and [row["offset"] for row in found] == list(range(50))
    assert found[0]["properties"] == [{"key": "unit", "value": "V"}] and found[0]["topic"].startswith("n/")
    source.stop()

    # away: the broker queues; back: the same range has the same rows, and what was queued comes behind it
    publish(port, 50, 80)
    again = reader(port, tmp_path / "spool")
    assert rows(again, start, end) == found
    later = until(again, end, 30)
    assert sorted(numbers(rows(again, end, later))) == list(range(50, 80))
    again.commit(end)
    assert again.initialOffset()["offset"] == 50
    with pytest.raises(BrokerError, match="should have offsets"):
        again.partitions(start, end)
    again.stop()


def test_a_reader_that_never_acknowledges_loses_nothing(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the spool's commit and the acknowledgement, again and again: repeated, never lost."""
    source = reader(port, tmp_path / "spool")
    start = source.initialOffset()
    with monkeypatch.context() as patch:
        patch.setattr(mqtt.Client, "ack", lambda *_: None)
        publish(port, 0, 40)
        until(source, start, 40)
        source.stop()
        source = reader(port, tmp_path / "spool")
        until(source, start, 80)
        source.stop()
    source = reader(port, tmp_path / "spool")
    end = until(source, start, 120)
    found = rows(source, start, end)
    assert {n: numbers(found).count(n) for n in range(40)} == dict.fromkeys(range(40), 3)
    assert sum(row["dup"] for row in found) == 80
    source.stop()
    # acknowledged by now
    last = reader(port, tmp_path / "spool")
    last.prepareForTriggerAvailableNow()
    assert last.latestOffset(end, ReadMaxRows(1_000)) == end
    last.stop()


def test_available_now_takes_what_was_queued_and_stops(port: int, tmp_path: Path) -> None:
    first = reader(port, tmp_path / "spool")
    start = first.initialOffset()
    first.stop()
    publish(port, 0, 30)
    source = reader(port, tmp_path / "spool")
    source.prepareForTriggerAvailableNow()
    publish(port, 30, 40)
    middle = source.latestOffset(start, ReadMaxRows(20))
    end = source.latestOffset(middle, ReadMaxRows(20))
    assert (middle["offset"], end["offset"]) == (20, 30)
    assert source.latestOffset(end, ReadMaxRows(20)) == end
    source.stop()


def test_the_older_version_of_mqtt(port: int, tmp_path: Path) -> None:
    source = reader(port, tmp_path / "spool", version="3.1.1")
    start = source.initialOffset()
    source.stop()
    publish(port, 0, 10)
    source = reader(port, tmp_path / "spool", version="3.1.1")
    found = rows(source, start, until(source, start, 10))
    assert sorted(numbers(found)) == list(range(10)) and found[0]["properties"] == []
    source.stop()


@pytest.fixture(name="ours")
def _ours() -> Iterator[int]:
    with BrokerThread() as broker:
        yield broker.port


def test_a_full_spool_holds_the_broker_back(ours: int, tmp_path: Path) -> None:
    source = reader(ours, tmp_path / "spool", spoolRows="20", receiveMaximum="5")
    start = source.initialOffset()
    publish(ours, 0, 100)
    place = start
    found: list[int] = []
    while len(found) < 100:
        end = until(source, place, 1)
        assert source.reportLatestOffset()["offset"] - place["offset"] < 20 + 2 * 5
        found += numbers(rows(source, place, end))
        source.commit(end)
        place = end
    assert sorted(found) == list(range(100))
    source.stop()


def test_another_spool_under_a_checkpoint_is_refused(ours: int, tmp_path: Path) -> None:
    source = reader(ours, tmp_path / "spool")
    start = source.initialOffset()
    source.stop()
    shutil.rmtree(tmp_path / "spool")
    other = reader(ours, tmp_path / "spool")
    with pytest.raises(BrokerError, match="is not the one that the checkpoint has read"):
        other.latestOffset(start, ReadMaxRows(1))
    other.stop()


def test_a_forgotten_session_is_said(ours: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = reader(ours, tmp_path / "spool")
    source.initialOffset()
    source.stop()
    with BrokerThread() as fresh:
        source = reader(fresh.port, tmp_path / "spool")
        source.initialOffset()
        source.stop()
    assert "has forgotten the session: what was published since the last connection is lost" in caplog.text


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    source = reader(port, tmp_path / "spool", patience="0.2")
    with pytest.raises(BrokerError, match="cannot be reached: connection refused"):
        source.initialOffset()
    source.stop()


def test_a_broker_that_goes_away_for_good(tmp_path: Path) -> None:
    with BrokerThread() as broker:
        source = reader(broker.port, tmp_path / "spool", patience="0.5")
        start = source.initialOffset()
    with pytest.raises(BrokerError, match=r"has been away for 0.5 s: the connection is lost"):
        patiently(lambda: source.latestOffset(start, ReadMaxRows(1)) is None, "the broker is given up")
    source.stop()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topics": ""}, "option topics is missing"),
        ({"topics": "a/#/b"}, 'topics = "a/#/b" is refused'),
        ({"spool": ""}, "option spool is missing"),
        ({"spool": "relative"}, "with its whole path"),
        ({"qos": "2"}, 'qos = "2" is refused: it is 1 or 0'),
        ({"version": "4"}, "it is 5 or 3.1.1"),
        ({"broker": ""}, "option broker is missing"),
        ({"startingOffsets": "earliest"}, 'no option "startingoffsets"'),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options({"broker": "mqtt://a", "topics": "a", "spool": "/tmp/x", **options})
    assert text in str(caught.value)
