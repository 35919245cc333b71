"""An unprivileged client finds nothing it may not see, through any door; and no secret is said anywhere."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S
from tests.kits.websocket import WebSocketDial
from tests.net.auth.users import write_users
from tieline import Settings
from tieline.conf.load import load
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import (
    Connack,
    Connect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    Subscription,
    Will,
)
from tieline.wire.reason import Reason

P = TypeVar("P", bound=Packet)

CONF = """\
data = "d"

[[listener]]
url = "tcp://127.0.0.1:0"

[[listener]]
url = "ws://127.0.0.1:0"

[auth]
password_file = "users"
anonymous = "loopback"

[mqtt]
sys_interval_s = 1

[[rule]]
allow = "all"
filter = "#"
users = ["admin"]

[[rule]]
allow = "all"
filter = "$SYS/#"
users = ["admin"]

[[rule]]
allow = "all"
filter = "open/#"

[[rule]]
allow = "all"
filter = "home/%u/%c"
"""

PASSWORD = "correct horse battery staple"
#: What eve would like to see.
TREASURE = b"the treasure lies below the oak"


@pytest.fixture(name="broker")
def _broker(tmp_path: Path) -> Iterator[BrokerThread]:
    (tmp_path / "broker.toml").write_text(CONF)
    write_users(tmp_path / "users", admin=PASSWORD, eve="eve")
    with BrokerThread(load(tmp_path / "broker.toml"), manage=True) as running:
        yield running


#: Every way to ask for more than one may: wildcards, shares, conditions, names that look like filters.
WISHES = (
    "#",
    "+",
    "+/#",
    "vault/x",
    "vault/#",
    "+/x",
    "$SYS/#",
    "$SYS/broker/+",
    "$share/g/#",
    "$share/g/vault/x",
    "$where/v>0/#",
    "$where/v>0/vault/x",
    "$share/g/$where/v>0/vault/#",
    "vault/x?v>0",
    "home/+/x",
    "home/admin/c",
    "home/#",
    "open/../vault/x",
    "open/#",
)


@pytest.mark.parametrize("client_id", ["eve", "+", "#", "admin/c", "c"])
@pytest.mark.parametrize("user", ["eve", None])
def test_nothing_is_seen_through_mqtt(broker: BrokerThread, client_id: str, user: str | None) -> None:
    url = broker.urls[0]
    login: dict[str, Any] = {"username": user, "password": b"eve" if user else None}
    with dial(url, "a", username="admin", password=PASSWORD.encode()) as admin, dial(url, client_id, **login) as eve:
        admin.send(Publish(topic="vault/x", payload=TREASURE, retain=True))
        admin.send(Publish(topic="home/admin/c", payload=TREASURE, retain=True))
        wishes = tuple(Subscription(filter=wish) for wish in WISHES)
        eve.send(Subscribe(packet_id=1, subscriptions=wishes))
        answers = dict(zip(WISHES, eve.expect(Suback).reasons, strict=True))
        granted = {wish for wish, reason in answers.items() if reason < Reason.UNSPECIFIED_ERROR}
        assert granted == {"open/../vault/x", "open/#"}, "a name with dots is below open/ and is nothing special"
        admin.send(Publish(topic="vault/x", payload=TREASURE), Publish(topic="open/x", payload=b"hello"))
        admin.send(Pingreq())
        admin.expect(Pingresp)
        eve.send(Pingreq())
        got: list[Packet | None] = []
        while not isinstance(packet := eve.receive(), Pingresp):
            got.append(packet)
        assert [packet.payload for packet in got if isinstance(packet, Publish)] == [b"hello"]


def test_nothing_is_seen_through_websocket(broker: BrokerThread) -> None:
    with WebSocketDial(broker.urls[1]) as eve:
        eve.send(encode(Connect(version=5, client_id="e", username="eve", password=b"eve"), 5))
        assert _is(Connack, eve.packet()).reason is Reason.SUCCESS
        eve.send(encode(Subscribe(packet_id=1, subscriptions=tuple(map(_wish, WISHES))), 5))
        reasons = _is(Suback, eve.packet()).reasons
        assert [reason for reason in reasons if reason < Reason.UNSPECIFIED_ERROR] == [0, 0]
    with WebSocketDial(broker.urls[1]) as stranger:
        stranger.send(encode(Connect(version=5, client_id="s", username="admin", password=b"guess"), 5))
        assert _is(Connack, stranger.packet()).reason is Reason.BAD_USER_NAME_OR_PASSWORD


def _is(kind: type[P], packet: Packet | None) -> P:
    assert isinstance(packet, kind)
    return packet


def _wish(filter_: str) -> Subscription:
    return Subscription(filter=filter_)


def test_nothing_is_written_or_taken_over(broker: BrokerThread) -> None:
    url = broker.urls[0]
    with dial(url, "a", username="admin", password=PASSWORD.encode(), clean_start=True) as admin:
        admin.subscribe("vault/#")
        with Dial(url) as thief:
            stolen = thief.connect("a", username="eve", password=b"eve", clean_start=False)
            assert stolen.reason is Reason.CLIENT_IDENTIFIER_NOT_VALID
        with Dial(url) as dying:
            will = Will(topic="vault/x", payload=b"lie")
            assert dying.connect("w", username="eve", password=b"eve", will=will).reason is Reason.NOT_AUTHORIZED
        with dial(url, "e", username="eve", password=b"eve") as eve:
            eve.send(Publish(topic="vault/x", payload=b"lie"), Publish(topic="vault/x", payload=b"", retain=True))
            eve.send(Pingreq())
            eve.expect(Pingresp)
        admin.send(Pingreq())
        admin.expect(Pingresp)


def test_the_management_socket_is_its_owners_alone(broker: BrokerThread, tmp_path: Path) -> None:
    found = (tmp_path / "d" / "tieline.sock").stat()
    assert stat.S_IMODE(found.st_mode) == 0o600 and found.st_uid == os.getuid()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Everything that the broker logs, whether or not another test has taken its log elsewhere."""
    log = logging.getLogger("tieline")
    before, log.propagate = log.propagate, False
    log.addHandler(caplog.handler)
    with caplog.at_level(logging.DEBUG, "tieline"):
        yield caplog
    log.removeHandler(caplog.handler)
    log.propagate = before


def test_no_secret_is_said_anywhere(told: pytest.LogCaptureFixture, broker: BrokerThread, tmp_path: Path) -> None:
    url = broker.urls[0]
    with dial(url, "a", username="admin", password=PASSWORD.encode()) as admin:
        for user, password in (("admin", PASSWORD.upper()), (PASSWORD, "x"), ("eve", "hunter2 " * 100)):
            with Dial(url) as client:
                client.connect("x", username=user, password=password.encode())
        with socket.socket(socket.AF_UNIX) as sock, sock.makefile("rwb") as lines:
            sock.settimeout(PATIENCE_S)
            sock.connect(str(tmp_path / "d" / "tieline.sock"))
            answers: list[str] = []
            for request in ({"do": "top"}, {"do": "reload"}, {"do": "else"}):
                lines.write(json.dumps(request).encode() + b"\n")
                lines.flush()
                answers.append(lines.readline().decode())
        shown = broker.ask(lambda core: repr([(conn, conn.login) for conn in core.connections]))
        admin.subscribe("$SYS/#")
        admin.send(Pingreq())
        system = b"".join(iter(lambda: _payload(admin), None))
    hashes = [line.partition(":")[2] for line in (tmp_path / "users").read_text().splitlines()]
    said = "\n".join([told.text, *answers, shown, system.decode(), repr(broker.ask(lambda core: core.access))])
    assert "connected a" in told.text and "refused_bad_user_name_or_password" in told.text
    for secret in (PASSWORD, PASSWORD.upper(), "hunter2", *hashes, *(each.rsplit("$", 1)[1] for each in hashes)):
        assert secret not in said


def _payload(client: Dial) -> bytes | None:
    packet = client.receive()
    return packet.payload if isinstance(packet, Publish) else None


def test_a_broker_without_rules_shows_its_own_state_to_everybody_on_this_machine() -> None:
    with BrokerThread(Settings(), listen=["tcp://127.0.0.1:0"]) as broker, dial(broker.urls[0], "c") as client:
        assert client.subscribe("$SYS/broker/version").reasons == (0,)
