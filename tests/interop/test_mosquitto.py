"""mosquitto's command line clients: what most people try first."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need
from tests.interop.clients.client import Options, Where
from tests.interop.clients.with_paho import PahoClient
from tests.kits.certificates import Certificates
from tests.kits.patience import PATIENCE_S, until
from tieline.conf.urls import parse
from tieline.pytest_plugin import BrokerThread

_serial = count(1)
_VERSIONS = {4: "mqttv311", 5: "mqttv5"}


class Mosquitto:
    """Runs mosquitto_pub, mosquitto_sub and mosquitto_rr against one listener, in one version of the protocol."""

    def __init__(self, broker: BrokerThread, where: Where, version: int) -> None:
        self._broker = broker
        self.version = version
        self._where = ["-h", where.host, "-p", str(where.port), "-V", _VERSIONS[version]]
        if where.is_tls:
            self._where += ["--cafile", str(where.authority)]
        self._running: list[subprocess.Popen[bytes]] = []

    def pub(
        self, *arguments: str, stdin: bytes | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run mosquitto_pub to its end."""
        command = [need("mosquitto_pub"), *self._where, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)
        assert not check or (done.returncode, done.stderr) == (0, b""), done
        return done

    def sub(self, *arguments: str, client_id: str = "") -> Subscriber:
        """Start mosquitto_sub, and return once the broker knows all its subscriptions."""
        client_id = client_id or f"mosquitto-{next(_serial)}"
        command = [need("mosquitto_sub"), *self._where, "-i", client_id, "-F", "%j", *arguments]
        popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._running.append(popen)
        filters = [value for flag, value in pairwise(arguments) if flag == "-t"]
        until(lambda: popen.poll() is not None or self._is_subscribed(client_id, filters), "mosquitto_sub is ready")
        return Subscriber(popen)

    def rr(self, *arguments: str) -> bytes:
        """Run mosquitto_rr to its end; the answer that it printed."""
        command = [need("mosquitto_rr"), *self._where, *arguments]
        return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True).stdout

    def is_away(self, client_id: str) -> bool:
        """The session is there, its client is not."""
        return self._broker.ask(lambda core: core.sessions[client_id].connection is None)

    def is_served(self, client_id: str) -> bool:
        """Nothing waits for the client, and it has acknowledged everything."""

        def ask(core: Any) -> bool:
            session = core.sessions[client_id]
            return not session.inflight and not session.queue.messages

        return self._broker.ask(ask)

    def _is_subscribed(self, client_id: str, filters: Sequence[str]) -> bool:
        def ask(core: Any) -> bool:
            session = core.sessions.get(client_id)
            return session is not None and session.connection is not None and set(filters) <= set(session.subscriptions)

        return self._broker.ask(ask)

    def close(self) -> None:
        for popen in self._running:
            if popen.poll() is None:
                popen.kill()
            popen.wait()
            for stream in (popen.stdout, popen.stderr):
                assert stream is not None
                stream.close()


class Subscriber:
    """A running mosquitto_sub."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen

    def output(self) -> bytes:
        """What it printed before it ended, by itself after -C messages or because it was told to."""
        output, errors = self._popen.communicate(timeout=PATIENCE_S)
        assert errors == b"", errors
        return output

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output().splitlines()]

    def payloads(self) -> list[str]:
        return [message["payload"] for message in self.messages()]

    def kill(self) -> None:
        """End it without a goodbye."""
        self._popen.send_signal(signal.SIGKILL)

    def end(self) -> None:
        """Tell it to say goodbye."""
        self._popen.send_signal(signal.SIGINT)


@pytest.fixture(
    params=[
        pytest.param((version, scheme), id=f"{version}-{scheme}") for version in (4, 5) for scheme in ("tcp", "tls")
    ]
)
def mosquitto(
    request: pytest.FixtureRequest, broker: BrokerThread, urls: dict[str, str], certificates: Certificates
) -> Iterator[Mosquitto]:
    version, scheme = request.param
    address = parse(urls[scheme])
    where = Where(scheme=scheme, host=address.host, port=address.port, authority=certificates.authority)
    made = Mosquitto(broker, where, version)
    yield made
    made.close()


@pytest.fixture
def mosquitto_5(broker: BrokerThread, where: Where) -> Iterator[Mosquitto]:
    made = Mosquitto(broker, where, 5)
    yield made
    made.close()


@pytest.fixture
def where(urls: dict[str, str], certificates: Certificates) -> Where:
    address = parse(urls["tcp"])
    return Where(scheme="tcp", host=address.host, port=address.port, authority=certificates.authority)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_publish_and_subscribe(mosquitto: Mosquitto, topic: str, qos: int) -> None:
    subscriber = mosquitto.sub("-t", topic, "-q", "2", "-C", "2")
    mosquitto.pub("-t", topic, "-m", "hello", "-q", str(qos))
    mosquitto.pub("-t", topic, "-n", "-q", str(qos))
    first, second = subscriber.messages()
    assert (first["topic"], first["payload"], first["qos"], first["retain"]) == (topic, "hello", qos, 0)
    assert second["payloadlen"] == 0


def test_many_lines_in_order(mosquitto: Mosquitto, topic: str) -> None:
    subscriber = mosquitto.sub("-t", topic, "-q", "1", "-C", "500")
    lines = [str(number) for number in range(500)]
    mosquitto.pub("-t", topic, "-q", "1", "-l", stdin="\n".join(lines).encode())
    assert subscriber.payloads() == lines


def test_a_large_file(mosquitto: Mosquitto, topic: str, tmp_path: Path) -> None:
    content = "0123456789" * 50_000
    (tmp_path / "file").write_text(content)
    subscriber = mosquitto.sub("-t", topic, "-C", "1")
    mosquitto.pub("-t", topic, "-f", str(tmp_path / "file"), "-q", "1")
    assert subscriber.payloads() == [content]


def test_retained_and_removed(mosquitto: Mosquitto, topic: str) -> None:
    mosquitto.pub("-t", topic, "-m", "kept", "-r", "-q", "1")
    assert [(one["payload"], one["retain"]) for one in mosquitto.sub("-t", topic, "-C", "1").messages()] == [
        ("kept", 1)
    ]
    mosquitto.pub("-t", topic, "-n", "-r", "-q", "1")
    subscriber = mosquitto.sub("-t", topic, "-C", "1")
    mosquitto.pub("-t", topic, "-m", "live")
    assert subscriber.payloads() == ["live"]


def test_wildcards_and_unsubscribe(mosquitto: Mosquitto, topic: str) -> None:
    subscriber = mosquitto.sub("-t", f"{topic}/+/a", "-t", f"{topic}/b/#", "-C", "3")
    for name in ("x/a", "b", "c", "b/deep/er"):
        mosquitto.pub("-t", f"{topic}/{name}", "-m", name)
    assert subscriber.payloads() == ["x/a", "b", "b/deep/er"]


def test_the_will_of_a_killed_client(mosquitto: Mosquitto, topic: str) -> None:
    watcher = mosquitto.sub("-t", topic, "-q", "1", "-C", "1")
    lost = mosquitto.sub(
        "-t", f"{topic}/x", "--will-topic", topic, "--will-payload", "killed", "--will-qos", "1", "--will-retain"
    )
    lost.kill()
    assert watcher.payloads() == ["killed"]
    assert mosquitto.sub("-t", topic, "-C", "1").messages()[0]["retain"] == 1


def test_what_a_durable_client_missed(mosquitto: Mosquitto, topic: str) -> None:
    client_id = f"durable-{topic.rpartition('/')[2]}"
    durable = ("-t", topic, "-q", "2", "-c")
    mosquitto.sub(*durable, client_id=client_id).end()
    until(lambda: mosquitto.is_away(client_id), "the broker has noticed")
    for number in range(5):
        mosquitto.pub("-t", topic, "-m", str(number), "-q", "1")
    assert mosquitto.sub(*durable, "-C", "5", client_id=client_id).payloads() == ["0", "1", "2", "3", "4"]


def test_the_broker_tells_about_itself(mosquitto: Mosquitto) -> None:
    found = {message["topic"] for message in mosquitto.sub("-t", "$SYS/#", "-C", "20").messages()}
    assert len(found) == 20
    assert all(topic.startswith("$SYS/broker/") for topic in found)


def test_names_that_people_watch_are_there(mosquitto_5: Mosquitto) -> None:
    names = ["version", "uptime", "clients/connected", "messages/received", "bytes/sent", "subscriptions/count"]
    filters = [word for name in names for word in ("-t", f"$SYS/broker/{name}")]
    found = {message["topic"] for message in mosquitto_5.sub(*filters, "-C", str(len(names))).messages()}
    assert found == {f"$SYS/broker/{name}" for name in names}


def test_properties(mosquitto_5: Mosquitto, topic: str) -> None:
    subscriber = mosquitto_5.sub("-t", topic, "-C", "1")
    properties: dict[str, Sequence[str]] = {
        "content-type": ["text/plain"],
        "response-topic": ["answers"],
        "correlation-data": ["abc"],
        "message-expiry-interval": ["77"],
        "payload-format-indicator": ["1"],
    }
    flags = [word for name, words in properties.items() for word in ("-D", "publish", name, *words)]
    mosquitto_5.pub("-t", topic, "-m", "x", "-q", "1", *flags)
    (message,) = subscriber.messages()
    found = message["properties"]
    assert found["content-type"] == "text/plain"
    assert found["response-topic"] == "answers"
    assert 70 <= found["message-expiry-interval"] <= 77
    assert found["payload-format-indicator"] == 1


def test_user_properties_in_order(mosquitto_5: Mosquitto, topic: str) -> None:
    subscriber = mosquitto_5.sub("-t", topic, "-C", "1", "-F", "%P")
    pairs = [("b", "1"), ("a", "2"), ("b", "3")]
    flags = [word for pair in pairs for word in ("-D", "publish", "user-property", *pair)]
    mosquitto_5.pub("-t", topic, "-m", "x", *flags)
    assert subscriber.output().split() == [b"b:1", b"a:2", b"b:3"]


def test_a_topic_alias(mosquitto_5: Mosquitto, topic: str) -> None:
    subscriber = mosquitto_5.sub("-t", topic, "-C", "3")
    mosquitto_5.pub("-t", topic, "-m", "x", "--repeat", "3", "-D", "publish", "topic-alias", "4")
    assert [message["topic"] for message in subscriber.messages()] == [topic] * 3


def test_a_question_of_mosquitto_is_answered_by_paho(mosquitto_5: Mosquitto, where: Where, topic: str) -> None:
    answers = PahoClient(where, Options(client_id=f"answers-{topic}"))
    answers.subscribe(f"{topic}/question")

    def answer(*_: Any) -> None:
        question = answers.receive()
        answers._client.publish(question.properties["response_topic"], question.payload[::-1])

    answers._client.on_message = _after(answers._client.on_message, answer)
    assert mosquitto_5.rr("-t", f"{topic}/question", "-e", f"{topic}/answer", "-m", "abc").strip() == b"cba"
    answers.close()


def _after(first: Any, then: Any) -> Any:
    def both(*args: Any) -> None:
        first(*args)
        then(*args)

    return both


def test_a_group_shares_the_work(mosquitto_5: Mosquitto, topic: str) -> None:
    names = [f"member-{next(_serial)}" for _ in range(2)]
    members = [mosquitto_5.sub("-t", f"$share/group/{topic}", "-q", "1", client_id=name) for name in names]
    payloads = [str(number) for number in range(100)]
    mosquitto_5.pub("-t", topic, "-q", "1", "-l", stdin="\n".join(payloads).encode())
    until(lambda: all(mosquitto_5.is_served(name) for name in names), "every message is acknowledged")
    for member in members:
        member.end()
    shares = [member.payloads() for member in members]
    assert all(shares)
    assert sorted(chain(*shares), key=int) == payloads


def test_mqtt_3_1_is_refused_with_a_reason(where: Where) -> None:
    command = [need("mosquitto_pub"), "-h", where.host, "-p", str(where.port), "-V", "mqttv31", "-t", "a", "-m", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode != 0
    assert "protocol version" in done.stderr.lower()


def test_plain_mosquitto_on_the_encrypted_port_fails_at_once(urls: dict[str, str]) -> None:
    port = str(parse(urls["tls"]).port)
    command = [need("mosquitto_pub"), "-h", "127.0.0.1", "-p", port, "-t", "a", "-m", "x"]
    assert subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False).returncode != 0


def test_an_encrypted_mosquitto_on_the_plain_port_fails_at_once(where: Where) -> None:
    command = [need("mosquitto_pub"), "-h", where.host, "-p", str(where.port), "-t", "a", "-m", "x"]
    command += ["--cafile", str(where.authority)]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode != 0
