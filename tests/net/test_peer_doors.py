"""Doors between brokers: TLS with certificates on both sides, sockets in the file system, names that are looked up."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trustme

from tests.kits.dial import dial, open_socket, read_to_end
from tests.kits.patience import until
from tests.net.test_peers import publish, reaches, refusals, settings, subscribe
from tests.net.test_ring import is_round, member_of
from tieline.conf import peers as peer_rules
from tieline.conf.overlay import Overlay, Peer, Ring
from tieline.conf.schema import Listener, Settings
from tieline.conf.urls import parse
from tieline.overlay.ring.messages import Peer as RingPeer
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


class Authority:
    """Issues certificates for brokers, by name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = trustme.CA()
        self.path = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.path))

    def overlay(self, name: str, *hosts: str) -> Overlay:
        """What a broker says that has a certificate for a name and for hosts."""
        made = self._ca.issue_cert(*hosts, name, common_name=name)
        key, chain = self._directory / f"{name}.key", self._directory / f"{name}.pem"
        made.private_key_pem.write_to_path(str(key))
        made.cert_chain_pems[0].write_to_path(str(chain))
        return Overlay(certificate=str(chain), key=str(key), ca=str(self.path))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def secure(name: str, overlay: Overlay, *urls: str) -> Settings:
    return msgspec.structs.replace(
        settings(name, *urls, overlay=overlay),
        listener=(Listener(url="tcp://127.0.0.1:0"), Listener(url="peer+tls://127.0.0.1:0")),
    )


def closed(broker: BrokerThread, name: str) -> int:
    return broker.ask(lambda core: core.account.closed[name])


def is_closed(broker: BrokerThread, name: str) -> bool:
    return closed(broker, name) > 0


@contextmanager
def joined(a: Settings, b: Settings) -> Iterator[tuple[BrokerThread, BrokerThread]]:
    with BrokerThread(a) as first, BrokerThread(b) as second:
        until(partial(reaches, first, 1), "the first knows the second")
        until(partial(reaches, second, 1), "and the second the first")
        yield first, second


def exchange(a: BrokerThread, b: BrokerThread) -> None:
    with dial(a.urls[0], "here") as here, dial(b.urls[0], "far") as far:
        subscribe(here, "x", 0)
        publish(far, "x", b"1", 1)
        here.expect(Publish, payload=b"1")


def test_brokers_are_joined_with_certificates_on_both_sides(authority: Authority) -> None:
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(secure("a", authority.overlay("a", "127.0.0.1"))))
        b = stack.enter_context(BrokerThread(secure("b", authority.overlay("b"), a.urls[1])))
        until(partial(reaches, a, 1), "they are joined")
        until(partial(reaches, b, 1), "on both sides")
        exchange(a, b)


def test_a_certificate_for_another_broker_is_refused_on_both_sides(authority: Authority) -> None:
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(secure("a", authority.overlay("a", "127.0.0.1"))))
        b = stack.enter_context(BrokerThread(secure("b", authority.overlay("c"), a.urls[1])))
        until(lambda: refusals(a) > 0, "whoever listens refuses it")
        until(lambda: refusals(b) > 0, "and it hears so")
        assert not reaches(a, 1)


def test_who_dials_wants_a_certificate_for_the_address(authority: Authority) -> None:
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(secure("a", authority.overlay("a", "elsewhere.example"))))
        b = stack.enter_context(BrokerThread(secure("b", authority.overlay("b"), a.urls[1])))
        until(partial(is_closed, b, "peer_tls_handshake_failed"), "it is not for 127.0.0.1")
        assert not reaches(b, 1)


def test_a_certificate_of_another_authority_and_none_are_refused(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path_of(tmp_path, "other"))
    with BrokerThread(secure("a", authority.overlay("a", "127.0.0.1"))) as a, ExitStack() as stack:
        foreign = msgspec.structs.replace(other.overlay("b"), ca=str(authority.path))
        stack.enter_context(BrokerThread(secure("b", foreign, a.urls[1])))
        until(partial(is_closed, a, "peer_tls_handshake_failed"), "it is of another authority")
        before = closed(a, "peer_tls_handshake_failed")
        context = ssl.create_default_context(cafile=str(authority.path))
        with pytest.raises((ssl.SSLError, ConnectionError)), open_socket(a.urls[1], context=context) as sock:
            sock.sendall(b"tieline-peer/1 b tieline 00\n")
            read_to_end(sock)
            raise ConnectionError("it was closed in order")
        until(lambda: closed(a, "peer_tls_handshake_failed") > before, "it has none")
        assert not reaches(a, 1)


def tmp_path_of(path: Path, name: str) -> Path:
    (path / name).mkdir()
    return path / name


def test_brokers_of_one_machine_are_joined_by_a_socket_of_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "peers.sock"
    url = f"peer+unix://{path}"
    here = msgspec.structs.replace(settings("a"), listener=(Listener(url="tcp://127.0.0.1:0"), Listener(url=url)))
    with joined(here, settings("b", url)) as (a, b):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        exchange(a, b)
    assert not path.exists()


def test_a_socket_that_nobody_serves_is_replaced_and_other_files_are_not(tmp_path: Path) -> None:
    path = tmp_path / "peers.sock"
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(path))
    here = Settings(name="a", listener=(Listener(url=f"peer+unix://{path}"),))
    with BrokerThread(here), pytest.raises(Exception, match="Address already in use"), BrokerThread(here):
        pass
    path.write_text("mine")
    with pytest.raises(Exception, match="no socket is in the way"), BrokerThread(here):
        pass
    assert path.read_text() == "mine"


def test_a_resolver_that_takes_long_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, asked = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def slow(host: str, *args: object, **kwargs: object) -> object:
        if host != "slow.example":
            return real(host, *args, **kwargs)  # type: ignore[arg-type]  # passed on as they came
        asked.set()
        assert answered.wait(60)
        return real("127.0.0.1", *args, **kwargs)  # type: ignore[arg-type]  # the same

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with BrokerThread(settings("a")) as a:
        port = parse(a.urls[1]).port
        with BrokerThread(settings("b", f"peer://slow.example:{port}")) as b:
            assert asked.wait(60)
            with dial(b.urls[0], "meanwhile") as client:
                subscribe(client, "x", 0)
                client.send(Publish(topic="x", payload=b"1"))
                client.expect(Publish, payload=b"1")
            answered.set()
            until(partial(reaches, b, 1), "it is joined once the name is known")


def test_a_broker_that_is_not_the_expected_one_is_refused() -> None:
    with BrokerThread(settings("a")) as a:
        wanting = msgspec.structs.replace(settings("b"), peer=(Peer(url=a.urls[1], name="another"),))
        with BrokerThread(wanting) as b:
            until(lambda: refusals(b) > 0, "it is refused")
            until(lambda: refusals(a) > 0, "and hears why")


def test_strangers_that_say_nothing_keep_nobody_out() -> None:
    with BrokerThread(settings("a")) as a, ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(open_socket(a.urls[1]))
        until(lambda: closed(a, "peer_strangers") >= 36, "the oldest had to go")
        b = stack.enter_context(BrokerThread(settings("b", a.urls[1])))
        until(partial(reaches, b, 1), "a broker is let in")


def test_eight_that_shake_hands_badly_stop_nobody(authority: Authority) -> None:
    with BrokerThread(secure("a", authority.overlay("a", "127.0.0.1"))) as a, ExitStack() as stack:
        for number in range(8):
            sock = stack.enter_context(open_socket(a.urls[1]))
            sock.sendall((b"\x16\x03\x01", b"CONNECT x", b"\xff" * 2_000, b"tieline-peer/1 x y z\n")[number % 4])
        b = stack.enter_context(BrokerThread(secure("b", authority.overlay("b"), a.urls[1])))
        until(partial(reaches, b, 1), "a broker is let in")
        exchange(a, b)
        until(lambda: closed(a, "peer_tls_handshake_failed") >= 6, "what is no TLS is counted")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Settings(peer=(Peer(),)), "without url and name"),
        (Settings(peer=(Peer(url="tcp://127.0.0.1:1"),)), "no address of a broker"),
        (Settings(peer=(Peer(url="peer://127.0.0.1:0"),)), "no port that could be dialled"),
        (Settings(peer=(Peer(url="peer://192.0.2.1:1"),)), "not on this machine alone"),
        (Settings(listener=(Listener(url="peer://0.0.0.0:1"),)), "not on this machine alone"),
        (Settings(peer=(Peer(url="peer+tls://192.0.2.1:1"),)), "overlay.certificate is missing"),
        (Settings(listener=(Listener(url="peer+tls://127.0.0.1:1", key="k"),)), "would never be used"),
        (Settings(name="a", peer=(Peer(name="a"),)), "has the name of this broker"),
        (Settings(peer=(Peer(name="b"), Peer(name="b"))), "two peers are called b"),
        (Settings(peer=(Peer(url="peer+unix://relative"),)), "names no socket"),
        (Settings(peer=(Peer(url="peer://127.0.0.1:1", may=("read a",)),)), "needs a name before it can be said"),
        (Settings(peer=(Peer(url="peer://127.0.0.1:1", key_file="k"),)), "a key of its own needs a name"),
        (Settings(peer=(Peer(name="b", may=("read a/#/b",)),)), '"a/#/b" is no topic filter'),
        (
            Settings(peer=(Peer(name="b", may=("read a",)),), overlay=Overlay(key_file="k")),
            "could take another name: give it a key_file of its own",
        ),
    ],
)
def test_a_slip_in_the_settings_gets_a_sentence(given: Settings, said: str) -> None:
    assert any(said in sentence for _path, sentence in peer_rules.broken(given))


def test_a_key_or_a_certificate_or_this_machine_is_enough() -> None:
    far = Peer(url="peer://192.0.2.1:1")
    secure_ = Overlay(certificate="c", key="k", ca="a")
    for fine in (
        Settings(peer=(far,), overlay=Overlay(key_file="k")),
        Settings(peer=(Peer(url="peer+tls://192.0.2.1:1"),), overlay=secure_),
        Settings(peer=(Peer(url="peer+unix:///run/x"), Peer(url="peer://127.0.0.1:1"), Peer(name="b"))),
    ):
        assert not [*peer_rules.broken(fine)]


def test_brokers_of_a_ring_dial_each_other_with_certificates(authority: Authority) -> None:
    def on_ring(name: str, *urls: str) -> Settings:
        overlay = authority.overlay(name, "127.0.0.1")
        overlay = msgspec.structs.replace(overlay, mode="ring", ring=Ring(stabilise_s=0.3))
        return secure(name, overlay, *urls)

    with (
        BrokerThread(on_ring("a")) as first,
        BrokerThread(on_ring("b", first.urls[1])) as second,
        BrokerThread(on_ring("c", first.urls[1])) as third,
    ):
        for broker in (first, second, third):
            until(partial(is_round, broker, 2), "the ring is round")
        exchange(second, third)
        # nothing that is told of an address makes a broker dial it without encryption
        member = second.ask(member_of)
        second.ask(lambda _core: member.links.send(RingPeer(1, "peer://127.0.0.1:1"), b"", 0.0))
        assert member.links.counts.bad_addresses
