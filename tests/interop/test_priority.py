"""Stock clients use priority: mosquitto's command line and the clients that most programs are written with."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count

import pytest

from tests.conftest import need
from tests.interop.conftest import Connect
from tests.kits.patience import PATIENCE_S
from tieline import Settings
from tieline.conf.schema import Class, Priority
from tieline.pytest_plugin import BrokerThread
from tieline.sched.levels import Patience

_serial = count(1)


@pytest.fixture
def tuned() -> Iterator[BrokerThread]:
    """A broker with topic rules, and no floor, so that the order is that of the levels alone."""
    classes = (Class(name="alarm", filter="+/alarm", level=3), Class(name="log", filter="+/log", level=0))
    with BrokerThread(Settings(class_=classes, priority=Priority(floor=0.0)), listen=["tcp://127.0.0.1:0"]) as broker:
        yield broker


def run(broker: BrokerThread, tool: str, *arguments: str) -> str:
    command = [need(tool), "-h", broker.host, "-p", str(broker.port), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def away(broker: BrokerThread, version: str) -> list[str]:
    """Arguments of a mosquitto_sub that has a session, which waits for it."""
    keeps = ["-x", "300"] if version == "mqttv5" else []
    arguments = ["-V", version, "-c", *keeps, "-q", "1", "-i", f"away-{next(_serial)}", "-t", "plant/#"]
    run(broker, "mosquitto_sub", *arguments, "-E")
    return arguments


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_mosquitto_by_topic_rule(tuned: BrokerThread, version: str) -> None:
    arguments = away(tuned, version)
    for topic in ("plant/log", "plant/data", "plant/alarm"):
        run(tuned, "mosquitto_pub", "-V", version, "-q", "1", "-t", topic, "-m", topic)
    got = run(tuned, "mosquitto_sub", *arguments, "-C", "3", "-W", "10")
    assert got.split() == ["plant/alarm", "plant/data", "plant/log"]


def test_mosquitto_by_user_property(tuned: BrokerThread) -> None:
    arguments = away(tuned, "mqttv5")
    for level in (1, 0, 3, 2):
        claim = ["-D", "PUBLISH", "user-property", "priority", str(level)]
        run(tuned, "mosquitto_pub", "-V", "mqttv5", "-q", "1", "-t", f"plant/{level}", "-m", str(level), *claim)
    got = run(tuned, "mosquitto_sub", *arguments, "-C", "4", "-W", "10")
    assert got.split() == ["3", "2", "1", "0"]


def test_mosquitto_by_the_level_of_the_node(tuned: BrokerThread) -> None:
    arguments = away(tuned, "mqttv5")
    for level in (0, 3):
        node = ["-D", "CONNECT", "user-property", "priority", str(level)]
        run(tuned, "mosquitto_pub", "-V", "mqttv5", "-q", "1", "-t", f"plant/{level}", "-m", str(level), *node)
    got = run(tuned, "mosquitto_sub", *arguments, "-C", "2", "-W", "10")
    assert got.split() == ["3", "0"]


def test_mosquitto_asks_for_feedback(tuned: BrokerThread) -> None:
    wishes = [("timeout", "2s"), ("period", "500ms"), ("frequency", "3")]
    asked = [word for name, value in wishes for word in ("-D", "SUBSCRIBE", "user-property", name, value)]
    run(tuned, "mosquitto_sub", "-V", "mqttv5", "-x", "300", "-c", "-i", "wishful", "-q", "1", "-t", "t", "-E", *asked)
    patience = tuned.ask(lambda core: core.sessions["wishful"].patience)
    assert patience == Patience(period_s=0.5, frequency=3, timeout_s=2.0)


def test_every_client_sends_and_sees_the_property(connect_5: Connect, broker: BrokerThread, topic: str) -> None:
    client = connect_5("both")
    client.subscribe(topic, 1)
    before = broker.ask(lambda core: list(core.account.received_by_level))
    client.publish(topic, b"urgent", 1, user_property=[("priority", "3")])
    assert ("priority", "3") in [tuple(pair) for pair in client.receive().properties["user_property"]]
    after = broker.ask(lambda core: list(core.account.received_by_level))
    assert after[3] - before[3] == 1
