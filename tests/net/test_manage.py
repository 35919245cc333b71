"""The management channel: one JSON object per line, for the owner alone."""

from __future__ import annotations

import gc
import json
import socket
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import dial, read_to_end
from tests.kits.patience import PATIENCE_S, until
from tieline import Settings
from tieline.conf.paths import management_socket
from tieline.conf.schema import Store
from tieline.net.manage import MAX_REQUEST
from tieline.net.store.schema import Unusable
from tieline.pytest_plugin import BrokerThread
from tieline.version import __version__
from tieline.wire.packets import Disconnect, Puback, Publish
from tieline.wire.reason import Reason


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def broker(data: Path) -> Iterator[BrokerThread]:
    with BrokerThread(data=str(data), name="here", manage=True) as running:
        yield running


@pytest.fixture
def path(broker: BrokerThread, data: Path) -> Path:
    return management_socket(str(data), "here")


class _Channel:
    """A connection to the management socket."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(str(path))
        self._lines = self.sock.makefile("rb")

    def ask(self, line: bytes) -> dict[str, Any]:
        self.sock.sendall(line + b"\n")
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer

    def close(self) -> None:
        self._lines.close()
        self.sock.close()


@pytest.fixture
def channel(path: Path) -> Iterator[_Channel]:
    opened = _Channel(path)
    yield opened
    opened.close()


def test_top_answers(broker: BrokerThread, channel: _Channel) -> None:
    with dial(broker.urls[0], "watched") as client:
        client.subscribe("a/#")
        client.send(Publish(topic="a/b", payload=b"x"), Publish(topic="c", payload=b"y", retain=True))
        client.expect(Publish)
        before = len(broker.ask(lambda core: [*core.retained.match("$SYS/#")]))
        answer = channel.ask(b'{"do": "top"}')
    assert answer["name"] == "here"
    assert answer["version"] == __version__
    assert answer["listeners"] == broker.urls
    assert answer["clients"] == {"connected": 1, "sessions": 1}
    assert answer["subscriptions"] == 1
    assert answer["retained"] == before + 1
    assert answer["totals"]["received"] == 2 and answer["totals"]["sent"] == 1
    assert answer["rates"]["received_per_s"] > 0
    (slowest,) = answer["slowest"]
    assert slowest["client"] == "watched" and slowest["paused"] == "caught_up" and slowest["queued"] == 0


def test_a_session_without_its_client_is_away(broker: BrokerThread, channel: _Channel) -> None:
    with dial(broker.urls[0], "away", properties={"session_expiry_interval": 60}) as client:
        client.subscribe("a", 1)
    until(lambda: broker.ask(lambda core: not core.connections), "it is gone")
    with dial(broker.urls[0], "sender") as sender:
        sender.send(Publish(topic="a", payload=bytes(1_000), qos=1, packet_id=1))
        sender.receive()
        first = channel.ask(b'{"do": "top"}')["slowest"][0]
    assert first["client"] == "away" and first["paused"] == "away" and first["peer"] == ""
    assert first["queued"] == 1 and first["queued_bytes"] >= 1_000


def test_drops_and_closed_connections_have_their_names(broker: BrokerThread, channel: _Channel) -> None:
    with dial(broker.urls[0], "wrong") as client:
        client.send(b"\x00\x00")
        read_to_end(client.sock)
    until(lambda: channel.ask(b'{"do": "top"}')["closed"].get("malformed_packet") == 1, "it is named")


def test_many_questions_on_one_connection(channel: _Channel) -> None:
    assert len({channel.ask(b'{"do": "top"}')["uptime_s"] for _ in range(20)}) == 20


def test_questions_in_one_go_are_answered_in_order(channel: _Channel) -> None:
    assert "error" in channel.ask(b'nonsense\n{"do": "top"}')
    assert json.loads(channel._lines.readline())["name"] == "here"


@pytest.mark.parametrize(
    "garbage",
    [
        *(
            b"",
            b"garbage",
            b"{",
            b"[]",
            b"5",
            b"null",
            b'"top"',
            b"{}",
            b'{"do": null}',
            b'{"do": ["top"]}',
            b"\xff\xfe",
        ),
        *(b"[" * 60_000, b"9" * 60_000, b'{"do": NaN}', b'{"do": {"do": "top"}}', b'{"do": "' + b"x" * 60_000 + b'"}'),
        b'{"do": "why", "client": "\\ud800"}',
        b'{"do": "trace", "topic": "\\ud800"}',
        b'{"do": "drops", "topic": "\\udfff/#"}',
    ],
)
def test_garbage_gets_an_error_object(channel: _Channel, garbage: bytes) -> None:
    answer = channel.ask(garbage)
    assert list(answer) == ["error"] and isinstance(answer["error"], str)
    assert channel.ask(b'{"do": "top"}')["name"] == "here"


def test_an_unknown_verb_is_told_the_known_ones(channel: _Channel) -> None:
    assert channel.ask(b'{"do": "dance"}') == {
        "error": 'this broker does not know how to do "dance"; '
        "it knows: demand, drain, drops, forget, heat, kick, more, net, plan, reload, retained, sessions, "
        "subscriptions, top, trace, why",
    }


def test_a_line_without_end_is_not_kept(broker: BrokerThread, channel: _Channel) -> None:
    channel.sock.sendall(bytes(MAX_REQUEST * 2))
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        # an end or a reset: a peer that never ends its line has no claim to an orderly one
        while channel.sock.recv(1):
            pass
        raise BrokenPipeError


def test_only_the_owner_may_ask(path: Path) -> None:
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_socket_is_gone_when_the_broker_is(data: Path) -> None:
    path = management_socket(str(data), "here")
    with BrokerThread(data=str(data), manage=True):
        assert path.exists()
    assert not path.exists()


def test_an_open_channel_does_not_keep_the_broker_from_stopping(data: Path) -> None:
    with BrokerThread(data=str(data), manage=True) as broker:
        channel = _Channel(management_socket(str(data), "here"))
        channel.ask(b'{"do": "top"}')
    assert not broker._thread.is_alive()
    assert channel._lines.readline() == b""
    channel.close()


def test_connections_that_were_only_just_accepted_are_closed_with_the_rest(data: Path) -> None:
    lost: list[str] = []
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("error")
        patch.setattr(sys, "unraisablehook", lambda problem: lost.append(str(problem.exc_value)))
        for _ in range(5):
            with BrokerThread(data=str(data), manage=True):
                for _ in range(3):
                    with socket.socket(socket.AF_UNIX) as sock:
                        sock.connect(str(data / "tieline.sock"))
            gc.collect()
    assert lost == []


def test_a_list_goes_in_pages(broker: BrokerThread, channel: _Channel) -> None:
    with dial(broker.urls[0], "reader") as client:
        for topic in "abc":
            client.subscribe(topic)
        first = channel.ask(b'{"do": "subscriptions", "most": 2}')
        assert [each["filter"] for each in first["subscriptions"]] == ["a", "b"] and first["more"]
        rest = channel.ask(b'{"do": "more"}')
        assert [each["filter"] for each in rest["subscriptions"]] == ["c"] and not rest["more"]
        assert "no list" in channel.ask(b'{"do": "more"}')["error"]
        (session,) = channel.ask(b'{"do": "sessions", "state": "connected"}')["sessions"]
        assert (session["client"], session["subscriptions"], session["is_connected"]) == ("reader", 3, True)


def test_a_retained_message_is_listed(broker: BrokerThread, channel: _Channel) -> None:
    with dial(broker.urls[0], "writer") as client:
        client.send(Publish(topic="kept", payload=b"\xff\x00", retain=True, qos=1, packet_id=1))
        client.expect(Puback)
        (kept,) = channel.ask(b'{"do": "retained"}')["retained"]
    assert (kept["topic"], kept["payload"], kept["payload_bytes"]) == ("kept", "/wA=", 2)


def test_a_client_is_kicked_and_may_come_back(broker: BrokerThread, channel: _Channel) -> None:
    with dial(broker.urls[0], "loud", clean_start=False, properties={"session_expiry_interval": 3_600}) as client:
        assert channel.ask(b'{"do": "kick", "client": "loud"}') == {"was_connected": True, "is_kept": True}
        assert client.expect(Disconnect).reason is Reason.ADMINISTRATIVE_ACTION
    with dial(broker.urls[0], "loud", clean_start=False, properties={"session_expiry_interval": 3_600}):
        assert channel.ask(b'{"do": "kick", "client": "loud", "forget": true}')["is_kept"] is False
    assert "no session" in channel.ask(b'{"do": "kick", "client": "loud"}')["error"]
    assert channel.ask(b'{"do": "top"}')["closed"]["kicked"] == 2


@pytest.mark.parametrize(
    "question",
    [
        b'{"do": "retained", "filter": "a#"}',
        b'{"do": "sessions", "state": "asleep"}',
        b'{"do": "sessions", "most": 0}',
        b'{"do": "kick"}',
    ],
)
def test_a_list_that_cannot_be_meant(channel: _Channel, question: bytes) -> None:
    assert channel.ask(question)["error"]
    assert channel.ask(b'{"do": "top"}')["name"] == "here"


def test_a_stale_socket_is_replaced(data: Path) -> None:
    path = management_socket(str(data), "here")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    with BrokerThread(data=str(data), name="here", manage=True):
        channel = _Channel(path)
        assert channel.ask(b'{"do": "top"}')["name"] == "here"
        channel.close()


def test_a_file_that_is_no_socket_is_not_ours_to_remove(data: Path) -> None:
    path = management_socket(str(data), "here")
    path.write_text("somebody's notes")
    with pytest.raises(OSError, match=r"tieline\.sock"), BrokerThread(data=str(data), manage=True):
        pass
    assert path.read_text() == "somebody's notes"


def test_a_second_broker_at_the_same_place_is_refused(broker: BrokerThread, data: Path, channel: _Channel) -> None:
    with pytest.raises(Unusable, match=r"another broker .*keeps its data in .*: give this one another --data"):
        BrokerThread(data=str(data), manage=True).__enter__()
    # without a store of its own, the socket is what they cannot both have
    settings = Settings(data=str(data), store=Store(engine="memory"), listener=broker._server.settings.listener)
    with pytest.raises(OSError, match=r"another broker serves .*: give this one another --name or --data"):
        BrokerThread(settings, name="here", manage=True).__enter__()
    assert channel.ask(b'{"do": "top"}')["name"] == "here"
    again = _Channel(management_socket(str(data), "here"))
    assert again.ask(b'{"do": "top"}')["listeners"] == broker.urls
    again.close()


def test_the_directory_is_made_for_the_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "not" / "yet"
    with BrokerThread(data=str(directory), manage=True):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_without_being_asked_an_embedded_broker_has_no_socket(data: Path) -> None:
    with BrokerThread(Settings(listener=BrokerThread()._server.settings.listener, data=str(data))):
        assert not [path for path in data.iterdir() if path.is_socket()]
