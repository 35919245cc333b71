"""Revoked means out, for certificates too: who was let in by what is not trusted any more does not stay."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kits.authority import Authority
from tests.kits.certificates import Certificates, issue
from tests.kits.dial import Dial, dial, open_socket, read_to_end
from tests.kits.patience import PATIENCE_S, until
from tests.kits.websocket import WebSocketDial
from tieline.conf.schema import Auth, Listener, Settings
from tieline.conf.urls import parse
from tieline.net.reload import reload
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Disconnect, Pingreq, Pingresp
from tieline.wire.reason import Reason


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


class House:
    """A broker whose clients are who their certificates say, and whose files the test rewrites."""

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        self.folder = directory
        self.trusted = directory / "clients.pem"
        self.root = Authority("root")
        self.trusted.write_text(self.root.pem)
        common: dict[str, Any] = {
            "certificate": str(certificates.certificate),
            "key": str(certificates.key),
            "client_ca": str(self.trusted),
            "user_from": "cn",
        }
        listeners = (
            Listener(url="tls://127.0.0.1:0", **common),
            Listener(url="wss://127.0.0.1:0", **common),
            Listener(url="tls://127.0.0.1:0", **(common | {"client_ca": None, "user_from": None})),
            Listener(url="tls://127.0.0.1:0", **(common | {"user_from": "san"})),
        )
        self.settings = Settings(listener=listeners, auth=Auth(anonymous="loopback"))
        self.broker = BrokerThread(self.settings, reread=lambda: self.settings)

    def issue(self, name: str, by: Authority | None = None) -> ssl.SSLContext:
        return (by or self.root).issue(self.folder / f"{name}.pem", name)

    def change(self, number: int, **terms: Any) -> None:
        """Write other terms of a listener."""
        listeners = [*self.settings.listener]
        listeners[number] = msgspec.structs.replace(listeners[number], **terms)
        self.settings = msgspec.structs.replace(self.settings, listener=tuple(listeners))

    def reload(self) -> int:
        """How many clients had to go."""
        assert self.broker._loop is not None
        done = asyncio.run_coroutine_threadsafe(reload(self.broker._server), self.broker._loop).result(PATIENCE_S)
        assert done["applied"]
        gone: int = done["disconnected"]
        return gone

    def closed(self, name: str = "certificate_revoked") -> int:
        return self.broker.ask(lambda core: core.account.closed[name])

    def user(self, client_id: str) -> str | None:
        """Who a client turned out to be."""
        logins = self.broker.ask(lambda core: [conn.login for conn in core.connections])
        return next(login.user for login in logins if login is not None and login.client_id == client_id)


@pytest.fixture
def house(tmp_path: Path, certificates: Certificates) -> Iterator[House]:
    made = House(tmp_path, certificates)
    with made.broker:
        yield made


def stays(client: Dial) -> None:
    client.send(Pingreq())
    client.expect(Pingresp)


def goes(client: Dial) -> None:
    client.expect(Disconnect, reason=Reason.ADMINISTRATIVE_ACTION)
    client.expect_end()


def is_refused(url: str, context: ssl.SSLContext) -> bool:
    try:
        with Dial(url, context=context) as client:
            return client.connect("again").reason is not Reason.SUCCESS
    except (ssl.SSLError, ConnectionError, AssertionError):
        return True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_whoever_has_a_certificate_of_an_authority_that_is_gone_is_out(house: House, version: ssl.TLSVersion) -> None:
    url, context = house.broker.urls[0], house.issue("ann")
    context.maximum_version = version
    with dial(url, "ann", context=context) as old, dial(house.broker.urls[2], "nobody", context=context) as other:
        assert house.user("ann") == "ann"
        assert house.reload() == 0
        stays(old)
        house.trusted.write_text(Authority("another").pem)
        assert house.reload() == 1
        goes(old)
        assert house.closed() == 1
        assert is_refused(url, context)
        # the listener that asks for no certificate has let nobody in by one
        stays(other)


def test_a_client_of_mqtt_3_1_1_and_one_over_websocket_are_out_too(house: House) -> None:
    context = house.issue("ann")
    with (
        dial(house.broker.urls[0], "old", version=4, context=context) as old,
        WebSocketDial(house.broker.urls[1], context=context) as web,
    ):
        web.send(encode(Connect(version=5, client_id="web"), 5))
        assert isinstance(web.packet(), Connack)
        house.trusted.write_text(Authority("another").pem)
        assert house.reload() == 2
        old.expect_end()
        found = web.packet()
        assert isinstance(found, Disconnect) and found.reason is Reason.ADMINISTRATIVE_ACTION


def test_whoever_has_shaken_hands_and_not_said_connect_is_out(house: House) -> None:
    context = house.issue("ann")
    with (
        Dial(house.broker.urls[0], context=context) as shaken,
        open_socket(house.broker.urls[0]) as silent,
        open_socket(house.broker.urls[1], context=context) as half,
    ):
        until(lambda: house.broker.ask(lambda core: len(core.connections)) == 3, "all three have come")
        house.trusted.write_text(Authority("another").pem)
        assert house.reload() == 3
        # what is said now is said to nobody
        shaken.sock.sendall(encode(Connect(version=5, client_id="late"), 5))
        assert read_to_end(shaken.sock) == b""
        assert read_to_end(silent) == b""
        assert read_to_end(half) == b""
        assert house.broker.ask(lambda core: not core.sessions)


def test_who_is_of_an_authority_that_stays_stays_whatever_comes_or_goes_beside_it(house: House) -> None:
    other = Authority("other")
    with dial(house.broker.urls[0], "ann", context=house.issue("ann")) as ann:
        house.trusted.write_text(house.root.pem + other.pem)
        assert house.reload() == 0
        with dial(house.broker.urls[0], "bob", context=house.issue("bob", other)) as bob:
            house.trusted.write_text(f"a comment\n{other.pem}\n")
            assert house.reload() == 1
            goes(ann)
            stays(bob)


def test_a_chain_that_led_through_what_was_trusted_ends_with_it(house: House) -> None:
    between = Authority("between", house.root)
    context = house.issue("ann", between)
    house.trusted.write_text(house.root.pem + between.pem)
    house.reload()
    with dial(house.broker.urls[0], "ann", context=context) as ann:
        # a chain is still found, by the certificate that the client sends; whether that is so, a new handshake finds
        house.trusted.write_text(house.root.pem)
        assert house.reload() == 1
        goes(ann)
    with dial(house.broker.urls[0], "ann", context=context) as ann:
        assert house.reload() == 0
        stays(ann)


def again(url: str, context: ssl.SSLContext, session: ssl.SSLSession | None) -> ssl.SSLSocket:
    """Another connection, which tries to continue where one before it ended."""
    return context.wrap_socket(open_socket(url), server_hostname=parse(url).host, session=session)


def test_a_connection_that_continued_a_session_of_tls_is_judged_by_all_that_was_trusted(house: House) -> None:
    context, url, other = house.issue("ann"), house.broker.urls[0], Authority("other")
    house.trusted.write_text(house.root.pem + other.pem)
    house.reload()
    with dial(url, "first", context=context) as first:
        assert isinstance(first.sock, ssl.SSLSocket)
        session = first.sock.session
    with again(url, context, session) as continued:
        assert continued.session_reused
        assert house.reload() == 0
        # which authority stood behind it is not known, so any that goes is enough
        house.trusted.write_text(house.root.pem)
        assert house.reload() == 1
        assert continued.recv(1) == b""


def test_a_session_of_tls_from_before_a_reload_is_not_continued(house: House) -> None:
    context, url = house.issue("ann"), house.broker.urls[0]
    with dial(url, "first", context=context) as first:
        assert isinstance(first.sock, ssl.SSLSocket)
        session = first.sock.session
    house.trusted.write_text(Authority("other").pem)
    house.reload()
    with pytest.raises((ssl.SSLError, ConnectionError)), again(url, context, session) as late:
        assert not late.session_reused
        late.sendall(encode(Connect(version=5, client_id="late"), 5))
        late.recv(1)


def test_a_certificate_on_a_list_is_out_and_others_come_back(house: House) -> None:
    url, ann, bob = house.broker.urls[0], house.issue("ann"), house.issue("bob")
    house.trusted.write_text(house.root.pem + house.root.revocations)
    house.reload()
    with dial(url, "ann", context=ann) as one, dial(url, "bob", context=bob) as two:
        assert house.reload() == 0
        house.root.revoke(house.folder / "ann.pem")
        house.trusted.write_text(house.root.pem + house.root.revocations)
        # what a list says only a handshake finds out
        assert house.reload() == 2
        goes(one)
        goes(two)
    assert is_refused(url, ann)
    with dial(url, "bob", context=bob) as two:
        stays(two)


def test_other_terms_of_a_listener_hold_for_those_who_are_in(house: House) -> None:
    context = house.issue("ann")
    with (
        dial(house.broker.urls[0], "by-name", context=context) as by_name,
        dial(house.broker.urls[2], "by-nothing", context=context) as by_nothing,
    ):
        house.change(0, user_from="san")
        house.change(2, client_ca=str(house.trusted))
        assert house.reload() == 2
        goes(by_name)
        goes(by_nothing)
    with dial(house.broker.urls[2], "shown", context=context) as shown:
        house.change(2, client_ca=None)
        assert house.reload() == 0
        stays(shown)


@pytest.mark.parametrize(
    ("names", "user"),
    [
        (("ann",), "ann"),
        (("ann", "bob"), None),
        (("ann\x00.example",), None),
        (("a\nb",), None),
        (("",), None),
        (("+/#",), "+/#"),
    ],
)
def test_a_common_name_is_a_user_or_nobody(house: House, names: tuple[str, ...], user: str | None) -> None:
    made = names if names != ("",) else ()
    context = house.root.issue(house.folder / "x.pem", *made)
    with Dial(house.broker.urls[0], context=context) as client:
        reason = client.connect("x").reason
        assert reason is (Reason.SUCCESS if user else Reason.BAD_USER_NAME_OR_PASSWORD)
        if user:
            assert house.user("x") == user


@pytest.mark.parametrize(
    ("alternative", "user"),
    [
        (("host.example", "other.example"), "host.example"),
        (("ann@example.org", "host.example"), "ann@example.org"),
        (("urn://device/7",), "urn://device/7"),
        (("host\x00.example",), None),
        ((), None),
    ],
)
def test_an_alternative_name_is_a_user_or_nobody(house: House, alternative: tuple[str, ...], user: str | None) -> None:
    context = house.root.issue(house.folder / "x.pem", "ann", alternative=alternative)
    with Dial(house.broker.urls[3], context=context) as client:
        reason = client.connect("x").reason
        assert reason is (Reason.SUCCESS if user else Reason.BAD_USER_NAME_OR_PASSWORD)
        if user:
            assert house.user("x") == user
