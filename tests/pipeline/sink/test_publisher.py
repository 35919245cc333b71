"""Publishing to a real broker: everything acknowledged, or a sentence."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.kits.certificates import issue
from tests.net.auth.users import write_users
from tests.pipeline.sink.conftest import Collect, properties
from tests.pipeline.sink.test_rows import table
from tieline.conf.schema import Auth, Rule, Settings
from tieline.pipeline.broker import BrokerError
from tieline.pipeline.options import OptionError
from tieline.pipeline.sink.options import SinkOptions, read_options
from tieline.pipeline.sink.publisher import Outgoing, Publisher
from tieline.pipeline.sink.rows import BATCH_SPAN, Message, numbered
from tieline.pipeline.sink.writers import ONCE, publish, stage
from tieline.pytest_plugin import BrokerThread


def sink(port: int, **more: str) -> SinkOptions:
    return read_options("tieline", {"broker": f"mqtt://127.0.0.1:{port}", "patience": "10", **more})


def row(topic: str, payload: bytes, level: int = -1, *, retain: bool = False) -> Message:
    return Message(0, topic, payload, 1, retain, level)


def test_a_batch_is_published_in_its_order_with_its_numbers(broker: BrokerThread, collect: Collect) -> None:
    collector = collect(broker.port)
    rows = [row("b", b"%03d" % n, n % 4) for n in range(300)] + [row("a", b"last is first")]
    staged = [stage(iter([table(part)]), "q") for part in (rows[::2], rows[1::2], [])]
    for _attempt in range(2):
        publish(sink(broker.port, window="7"), "0123456789abcdef", staged, 5)
    # the attempts have the same numbers, which is how the broker knows the second for a repetition
    found = [(message.topic, message.payload, properties(message)) for message in collector.wait(301)[:301]]
    assert [payload for _topic, payload, _properties in found] == [b"last is first", *(b"%03d" % n for n in range(300))]
    assert [each[ONCE] for _topic, _payload, each in found] == [
        f"0123456789abcdef/{5 * BATCH_SPAN + n}" for n in range(301)
    ]
    assert "priority" not in found[0][2] and found[4][2]["priority"] == "3"


def test_a_batch_that_runs_again_is_delivered_once(tmp_path: Path, collect: Collect) -> None:
    """The driver died in the middle: a part of the batch is published, then all of it, from other partitions."""
    rows = [row(f"t/{n % 3}", b"%03d" % n) for n in range(200)]
    with BrokerThread(data=str(tmp_path)) as broker:
        collector = collect(broker.port)
        options = sink(broker.port)
        begun = [Outgoing(message, ONCE, f"p/{number}") for number, message in numbered(rows, 7)[:120]]
        with Publisher(options.broker, "tieline-p", patience_s=10) as publisher:
            publisher.publish(begun)
        for parts in ((rows[50:], rows[:50]), (rows[::2], rows[1::2])):
            publish(options, "p", [stage(iter([table(part)]), "q") for part in parts], 7)
        publish(options, "p", [stage(iter([table([row("end", b"")])]), "q")], 8)
        found = [(message.topic, message.payload) for message in collector.wait(201)]
    assert found[-1] == ("end", b"")
    assert found[:-1] == sorted((each.topic, each.payload) for each in rows)


def test_nothing_to_publish_needs_no_broker() -> None:
    publish(sink(1), "p", [stage(iter([]), "q")], 0)


def test_retained_rows_stay(broker: BrokerThread, collect: Collect) -> None:
    publish(sink(broker.port), "p", [stage(iter([table([row("kept", b"x", retain=True)])]), "q")], 0)
    (message,) = collect(broker.port).wait(1)
    assert message.retain and message.payload == b"x"


def test_a_broker_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(BrokerError, match="cannot be reached: connection refused"):
        Publisher(sink(port).broker, "x", patience_s=0.1).__enter__()


def test_a_broker_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        quiet = sink(silent.getsockname()[1]).broker
        with pytest.raises(BrokerError, match=r"acknowledged nothing for 0.3 s"), Publisher(quiet, "x", patience_s=0.3):
            pass


# paho leaves the socket of a failed handshake to the garbage collector
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
def test_encrypted_with_a_password_and_rules(tmp_path: Path) -> None:
    certificates = issue(tmp_path)
    users = write_users(tmp_path / "users", anna="secret")
    rules = (Rule(filter="allowed/#", allow="all", users=("anna",)),)
    settings = Settings(
        listener=certificates.listeners(["tls://127.0.0.1:0"]),
        auth=Auth(password_file=str(users)),
        rule=rules,
    )
    with BrokerThread(settings) as broker:
        options = {"broker": f"mqtts://127.0.0.1:{broker.port}", "user": "anna", "password": "secret", "patience": "5"}
        ca = {"ca": str(certificates.authority)}
        staged = [stage(iter([table([row("allowed/a", b"x")])]), "q")]
        elsewhere = [stage(iter([table([row("other", b"x")])]), "q")]
        publish(read_options("tieline", options | ca), "p", staged, 0)
        with pytest.raises(BrokerError, match="refuses a message: not authorized"):
            publish(read_options("tieline", options | ca), "p", elsewhere, 0)
        with pytest.raises(BrokerError, match="refuses the connection"):
            publish(read_options("tieline", options | ca | {"password": "guess"}), "p", staged, 0)
        with pytest.raises(BrokerError, match="certificate is not trusted"):
            publish(read_options("tieline", options | {"patience": "0.1"}), "p", staged, 0)
    gc.collect()


def test_another_process_under_the_same_name_ends_the_first(broker: BrokerThread) -> None:
    options = sink(broker.port)
    with Publisher(options.broker, "same", patience_s=10) as first:
        usurper = mqtt.Client(CallbackAPIVersion.VERSION2, "same", protocol=mqtt.MQTTv5)
        usurper.connect("127.0.0.1", broker.port)
        usurper.loop_start()
        with pytest.raises(BrokerError, match="another process publishes under the same name"):
            for number in range(100_000):
                first.publish([Outgoing(row("a", b""), ONCE, f"p/{number}")])
        usurper.disconnect()
        usurper.loop_stop()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "option broker is missing"),
        ({"broker": "tcp://a:1"}, "mqtt://HOST:PORT or mqtts://HOST:PORT"),
        ({"broker": "mqtt://a:port"}, "mqtt://HOST:PORT"),
        ({"broker": "mqtt://u:p@a"}, "mqtt://HOST:PORT"),
        ({"broker": "mqtt://a", "producer": "a/b"}, 'producer = "a/b" is refused'),
        ({"broker": "mqtt://a", "window": "0"}, 'window = "0"'),
        ({"broker": "mqtt://a", "topics": "x"}, 'format("tieline") has no option "topics"'),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options("tieline", options)
    assert text in str(caught.value)


def test_default_ports() -> None:
    assert read_options("mqtt", {"broker": "mqtt://a"}).broker.port == 1883
    assert read_options("mqtt", {"broker": "mqtts://a"}).broker.port == 8883
    assert "secret" not in repr(read_options("mqtt", {"broker": "mqtt://a", "user": "u", "password": "secret"}))
