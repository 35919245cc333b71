"""TLS listeners: who is let in, who is not, and what the counters call it."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import msgspec
import pytest

from tests.kits.certificates import Certificates, issue
from tests.kits.dial import Dial, dial, hang_up, open_socket, read_to_end
from tests.kits.patience import until
from tieline import Limits, Settings
from tieline.conf.urls import parse
from tieline.net.address import server_context
from tieline.net.layer import LayerError
from tieline.net.listener import ListenError
from tieline.net.tls import Tls
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Disconnect, Pingreq, Pingresp, Puback, Publish, Will
from tieline.wire.reason import Reason

T = TypeVar("T")

_CONNECT = encode(Connect(version=5, client_id="plain"), 5)


@pytest.fixture
def broker(certificates: Certificates) -> Iterator[BrokerThread]:
    with BrokerThread(Settings(listener=certificates.listeners(["tls://127.0.0.1:0"]))) as running:
        yield running


@pytest.fixture
def strict(certificates: Certificates) -> Iterator[BrokerThread]:
    listeners = certificates.listeners(["tls://127.0.0.1:0"], asks_clients=True)
    with BrokerThread(Settings(listener=listeners)) as running:
        yield running


def _closed(broker: BrokerThread, name: str) -> None:
    until(lambda: broker.ask(lambda core: core.account.closed[name] == 1), f"{name} is counted")
    until(lambda: broker.ask(lambda core: not core.connections), "the connection is forgotten")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_current_versions_of_tls(
    broker: BrokerThread, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    context = certificates.context()
    context.minimum_version = context.maximum_version = version
    with dial(broker.urls[0], "modern", context=context) as client:
        assert isinstance(client.sock, ssl.SSLSocket)
        assert client.sock.version() == version.name.replace("_", ".")
        client.send(Pingreq())
        client.expect(Pingresp)


def test_no_version_below_1_2(certificates: Certificates) -> None:
    (listener,) = certificates.listeners(["tls://127.0.0.1:0"])
    assert server_context(listener).minimum_version is ssl.TLSVersion.TLSv1_2


def test_an_older_version_is_refused_and_counted(broker: BrokerThread, certificates: Certificates) -> None:
    context = certificates.context()
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        open_socket(broker.urls[0], context=context)
    _closed(broker, "tls_handshake_failed")


def test_a_client_that_does_not_trust_the_authority_is_counted(broker: BrokerThread) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        open_socket(broker.urls[0], context=ssl.create_default_context())
    _closed(broker, "tls_handshake_failed")


@pytest.mark.parametrize(
    "words", [_CONNECT, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello"], ids=["mqtt", "http", "not-quite-tls"]
)
def test_whoever_does_not_speak_tls_gets_an_alert_and_an_orderly_end(broker: BrokerThread, words: bytes) -> None:
    with open_socket(broker.urls[0]) as sock:
        sock.sendall(words + bytes(300_000))
        answer = read_to_end(sock)
    assert answer == b"" or answer[:2] == b"\x15\x03"  # an alert, which is all that TLS has to say
    _closed(broker, "tls_handshake_failed")


def test_the_log_says_what_was_spoken_instead(broker: BrokerThread, caplog: pytest.LogCaptureFixture) -> None:
    with open_socket(broker.urls[0]) as sock:
        sock.sendall(_CONNECT)
        read_to_end(sock)
    until(lambda: "plain MQTT on a TLS port" in caplog.text, "the log line")


def test_a_client_certificate_is_asked_for(strict: BrokerThread, certificates: Certificates) -> None:
    with dial(strict.urls[0], "known", context=certificates.context(with_client=True)) as client:
        client.send(Pingreq())
        client.expect(Pingresp)


def test_no_client_certificate_no_connection(strict: BrokerThread, certificates: Certificates) -> None:
    # TLS 1.3 tells the client only after its own side of the handshake is done
    with (
        pytest.raises((ssl.SSLError, ConnectionResetError)),
        Dial(strict.urls[0], context=certificates.context()) as it,
    ):
        it.connect("anonymous")
    _closed(strict, "tls_handshake_failed")
    assert strict.ask(lambda core: not core.sessions)


def test_a_client_certificate_of_another_authority_does_not_help(
    strict: BrokerThread, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = issue(tmp_path_factory.mktemp("stranger"))
    context = certificates.context()
    context.load_cert_chain(stranger.client)
    with pytest.raises((ssl.SSLError, ConnectionResetError)), Dial(strict.urls[0], context=context) as client:
        client.connect("stranger")
    _closed(strict, "tls_handshake_failed")


def test_the_end_is_announced(broker: BrokerThread, certificates: Certificates) -> None:
    # without close_notify the ssl module raises SSLEOFError instead of returning b""
    with dial(broker.urls[0], "polite", context=certificates.context()) as client:
        client.send(Disconnect())
        client.expect_end()
    _closed(broker, "disconnect")


def test_the_reason_of_the_end_arrives_before_the_end(broker: BrokerThread, certificates: Certificates) -> None:
    with dial(broker.urls[0], "wrong", context=certificates.context()) as client:
        client.send(b"\x00\x00")
        client.expect(Disconnect, reason=Reason.MALFORMED_PACKET)
        client.expect_end()


def test_a_lost_connection_publishes_the_will(broker: BrokerThread, certificates: Certificates) -> None:
    context = certificates.context()
    with dial(broker.urls[0], "watcher", context=context) as watcher:
        watcher.subscribe("wills")
        lost = dial(broker.urls[0], "lost", context=context, will=Will(topic="wills", payload=b"gone"))
        hang_up(lost.sock)
        watcher.expect(Publish, topic="wills", payload=b"gone")


def test_close_notify_without_disconnect_is_a_lost_connection(broker: BrokerThread, certificates: Certificates) -> None:
    context = certificates.context()
    with dial(broker.urls[0], "watcher", context=context) as watcher:
        watcher.subscribe("wills")
        with dial(broker.urls[0], "lost", context=context, will=Will(topic="wills", payload=b"gone")) as lost:
            assert isinstance(lost.sock, ssl.SSLSocket)
            lost.sock.unwrap().close()
            watcher.expect(Publish, topic="wills", payload=b"gone")


def test_records_in_single_bytes(broker: BrokerThread, certificates: Certificates) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = certificates.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with open_socket(broker.urls[0]) as sock:

        def insist(step: Callable[[], T]) -> T:
            """Repeat a step of TLS, byte by byte, until the broker has sent what it needs."""
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        sock.send(bytes([byte]))
                    incoming.write(sock.recv(65_536))

        insist(tls.do_handshake)
        tls.write(encode(Connect(version=5, client_id="slow"), 5))
        answer = insist(tls.read)
    assert answer[0] == 0x20 and answer[3] == 0


def test_large_messages_both_ways(broker: BrokerThread, certificates: Certificates) -> None:
    payload = bytes(range(256)) * 4_000  # near the packet limit, so many TLS records and many writes
    with dial(broker.urls[0], "large", context=certificates.context()) as client:
        client.subscribe("large", 1)
        for number in range(1, 6):
            client.send(Publish(topic="large", payload=payload, qos=1, packet_id=number))
        found = [packet for packet in (client.receive() for _ in range(10)) if isinstance(packet, Publish)]
        assert [packet.payload for packet in found] == [payload] * 5


def test_a_reader_that_stops_does_not_harm_others(certificates: Certificates) -> None:
    settings = Settings(listener=certificates.listeners(["tls://127.0.0.1:0"]), limits=Limits(queue_bytes=100_000))
    context = certificates.context()
    with (
        BrokerThread(settings) as broker,
        dial(broker.urls[0], "stalled", context=context) as stalled,
        dial(broker.urls[0], "busy", context=context) as busy,
    ):
        stalled.subscribe("flood")
        busy.subscribe("echo", 1)
        for _ in range(200):
            busy.send(Publish(topic="flood", payload=bytes(100_000)))
        busy.send(Publish(topic="echo", payload=b"still here", qos=1, packet_id=9))
        assert {type(busy.receive()), type(busy.receive())} == {Puback, Publish}
        until(lambda: broker.ask(lambda core: sum(core.account.drops.values())) > 0, "drops have a name")
        assert broker.ask(lambda core: core.queued_bytes) < 1_000_000
        stalled.close()


def test_a_session_of_tls_can_be_resumed(broker: BrokerThread, certificates: Certificates) -> None:
    context = certificates.context()
    with dial(broker.urls[0], "first", context=context) as first:
        assert isinstance(first.sock, ssl.SSLSocket)
        session = first.sock.session
    address = parse(broker.urls[0])
    plain = open_socket(broker.urls[0])
    with context.wrap_socket(plain, server_hostname=address.host, session=session) as again:
        assert again.session_reused


def test_a_handshake_that_is_never_finished(certificates: Certificates) -> None:
    listeners = certificates.listeners(["tls://127.0.0.1:0", "wss://127.0.0.1:0"])
    with BrokerThread(Settings(listener=listeners, limits=Limits(connect_timeout_s=0.1))) as broker:
        for url in broker.urls:
            with open_socket(url) as silent:
                silent.sendall(b"\x16\x03\x01\x02\x00")
                assert read_to_end(silent) == b""
        with open_socket(broker.urls[1], context=certificates.context()) as half:
            half.sendall(b"GET /mqtt HTTP/1.1\r\n")
            assert read_to_end(half) == b""
        assert broker.ask(lambda core: core.account.closed["connect_timeout"]) == 3


@pytest.mark.parametrize("missing", ["certificate", "key", "client_ca"])
def test_files_that_cannot_be_read_give_a_sentence(certificates: Certificates, missing: str) -> None:
    (listener,) = certificates.listeners(["tls://127.0.0.1:0"])
    listener = msgspec.structs.replace(listener, **{missing: "no-such-file.pem"})
    with pytest.raises(ListenError, match=r"tls://127\.0\.0\.1:0: the certificate or key cannot be used"):
        BrokerThread(Settings(listener=(listener,))).__enter__()
    gc.collect()  # nothing that was opened before the failure is left to be warned about


def test_the_layer_names_an_error_after_the_handshake(certificates: Certificates) -> None:
    (listener,) = certificates.listeners(["tls://127.0.0.1:0"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = certificates.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    server = Tls(server_context(listener))
    for _ in range(3):
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        server.received(outgoing.read())
        incoming.write(server.pending())
    assert server.is_ready and not server.is_over
    client.write(b"hello")
    assert server.received(outgoing.read()) == b"hello"
    client.write(b"the last word")
    with pytest.raises(LayerError) as caught:
        server.received(outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
    assert caught.value.name == "tls_error"
    assert caught.value.before == b"the last word"


def test_the_answer_to_connect_is_the_first_thing_a_client_hears(
    broker: BrokerThread, certificates: Certificates
) -> None:
    with Dial(broker.urls[0], context=certificates.context()) as client:
        client.send(Connect(version=5, client_id="eager"), Pingreq(), Pingreq())
        client.expect(Connack, reason=Reason.SUCCESS)
        client.expect(Pingresp)
        client.expect(Pingresp)
