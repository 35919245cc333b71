"""Reload: what differs is listed, what can change does, and anything doubtful changes nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trustme

from tests.kits.certificates import trusting
from tests.kits.dial import Dial, addresses, dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.auth.users import write_users
from tieline.conf.load import loads
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Class, Limits, Listener, Mqtt, Rule, Settings
from tieline.net.reload import LIVE, ReloadError, compare, merge, reload
from tieline.net.server import Server
from tieline.wire.packets import Disconnect, Pingreq, Pingresp, Puback, Publish
from tieline.wire.reason import Reason

# --- what differs -----------------------------------------------------------------------------------------------------


def test_nothing_differs_from_itself() -> None:
    assert compare(Settings(), Settings()) == []


def test_every_change_has_its_name_and_says_whether_it_acts_at_once() -> None:
    old = Settings(listener=(Listener(url="tcp://127.0.0.1"), Listener(url="tcp://[::1]")))
    new = Settings(
        name="other",
        listener=(Listener(url="tcp://127.0.0.1", connections=5), Listener(url="tcp://[::1]")),
        limits=Limits(sessions=5, receive_maximum=5),
        mqtt=Mqtt(pause_max_s=1.0, maximum_qos=1),
        rule=(Rule(allow="all", filter="#"),),
        class_=(Class(name="c", filter="c", level=3),),
    )
    assert {(change.key, change.is_live) for change in compare(old, new)} == {
        ("name", False),
        ("listener[1].connections", True),
        ("limits.sessions", True),
        ("limits.receive_maximum", False),
        ("mqtt.pause_max_s", True),
        ("mqtt.maximum_qos", False),
        ("rule", True),
        ("class", True),
    }
    merged = merge(old, new)
    assert (merged.name, merged.limits.sessions, merged.mqtt.maximum_qos) == ("tieline", 5, 2)
    assert merged.listener[0].connections == 5 and merged.class_ == new.class_
    assert [change.is_live for change in compare(old, merged)] == [True] * 5


def test_another_address_is_another_listener() -> None:
    old, new = Settings(), Settings(listener=(Listener(url="tcp://127.0.0.1:1"),))
    assert [(change.key, change.is_live) for change in compare(old, new)] == [("listener", False)]
    assert merge(old, new) == old


def test_rules_on_other_lines_are_said_to_be_the_same() -> None:
    text = '[[rule]]\nallow = "all"\nfilter = "#"\n'
    (change,) = compare(loads(text), loads(f"\n\n{text}"))
    assert change.new == "the same, on other lines" and change.is_live


def test_what_is_live_exists() -> None:
    fields = {field.encode_name: getattr(Settings(), field.name) for field in msgspec.structs.fields(Settings)}
    for table, keys in LIVE.items():
        assert table in fields
        assert keys is None or keys <= set(fields[table].__struct_fields__)


# --- a running broker -------------------------------------------------------------------------------------------------


class Served:
    """A broker in a process of its own, started from a file that the test rewrites."""

    def __init__(self, directory: Path, text: str) -> None:
        self.directory = directory
        self.file = directory / "broker.toml"
        self.file.write_text(text)
        command = [sys.executable, "-m", "tieline", "serve", "--config", str(self.file)]
        self._errors = (directory / "log").open("w")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        assert self.process.stdout is not None
        self.urls = addresses(self.process.stdout.readline())

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def hang_up(self, said: str) -> None:
        """SIGHUP, and wait until the log says so."""
        before = len(self.log())
        self.process.send_signal(signal.SIGHUP)
        until(lambda: said in self.log()[before:], f"{said!r} in the log")

    def reload(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tieline", "reload", "--data", str(self.directory / "d"), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        self._errors.close()


BASE = """\
data = "d"
[[listener]]
url = "tcp://127.0.0.1:0"
[auth]
password_file = "users"
"""
CLOSED = f'{BASE}[[rule]]\nallow = "all"\nfilter = "open/#"\n'


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    write_users(tmp_path / "users", ann="one", bob="two")
    running = Served(tmp_path, BASE)
    yield running
    running.close()


def _may_publish(client: Dial, topic: str) -> bool:
    client.send(Publish(topic=topic, payload=b"x", qos=1, packet_id=1))
    return client.expect(Puback).reason < Reason.UNSPECIFIED_ERROR


def test_other_rules_by_signal_and_by_command(served: Served) -> None:
    with dial(served.urls[0], "c") as client:
        assert _may_publish(client, "closed/x")
        served.write(CLOSED)
        served.hang_up("reload: done")
        assert not _may_publish(client, "closed/x") and _may_publish(client, "open/x")
        served.write(BASE)
        told = served.reload()
        assert (told.returncode, told.stderr) == (0, "")
        assert "rule: 1 entries -> ()  (applies now)" in told.stdout and "0 clients were disconnected" in told.stdout
        assert _may_publish(client, "closed/x")


def test_a_file_that_cannot_be_used_changes_nothing_and_says_where(served: Served) -> None:
    served.write(CLOSED + "[limits]\ninflght = 3\n")
    told = served.reload()
    assert told.returncode == 1
    assert "nothing was changed" in told.stderr and 'broker.toml:10: "limits.inflght" is not a setting' in told.stderr
    served.hang_up("nothing was changed")
    with dial(served.urls[0], "c") as client:
        assert _may_publish(client, "closed/x")


def test_a_user_file_that_cannot_be_used_changes_nothing(served: Served, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann:plain\n")
    served.write(CLOSED)
    told = served.reload()
    assert told.returncode == 1 and "not an argon2id hash" in told.stderr
    with dial(served.urls[0], "c", username="bob", password=b"two") as client:
        assert _may_publish(client, "closed/x"), "neither the users nor the rules"


def test_what_needs_a_restart_is_refused_by_name_and_the_rest_waits_for_partial(served: Served) -> None:
    served.write(CLOSED.replace('"d"', '"d"\nname = "other"') + "[mqtt]\nmaximum_qos = 1\n")
    with dial(served.urls[0], "c") as client:
        for words in ((), ("--dry",)):
            told = served.reload(*words)
            assert told.returncode == 2 and "name: tieline -> other  (needs a restart)" in told.stdout
            assert _may_publish(client, "closed/x")
        assert "name, mqtt.maximum_qos would need a restart" in served.reload().stderr
        served.hang_up("name, mqtt.maximum_qos would need a restart")
        assert _may_publish(client, "closed/x")
        assert served.reload("--partial").returncode == 0
        assert not _may_publish(client, "closed/x")


def test_a_user_who_is_removed_or_has_another_password_has_to_go(served: Served, tmp_path: Path) -> None:
    url = served.urls[0]
    with (
        dial(url, "a", username="ann", password=b"one") as ann,
        dial(url, "b", username="bob", password=b"two") as bob,
        dial(url, "n") as nobody,
    ):
        write_users(tmp_path / "users", ann="three")
        assert "1 clients were disconnected" in served.reload().stdout
        ann.expect(Disconnect, reason=Reason.ADMINISTRATIVE_ACTION)
        for client in (bob, nobody):
            client.send(Pingreq())
            client.expect(Pingresp)
        served.write(BASE + 'anonymous = "nowhere"\n')
        assert "1 clients were disconnected" in served.reload().stdout
        nobody.expect(Disconnect, reason=Reason.ADMINISTRATIVE_ACTION)
    with Dial(url) as old:
        assert old.connect("a", username="ann", password=b"one").reason is Reason.BAD_USER_NAME_OR_PASSWORD
    with dial(url, "a", username="ann", password=b"three"):
        pass


def test_a_reload_that_changes_nothing_disturbs_nobody(served: Served) -> None:
    with dial(served.urls[0], "c", username="ann", password=b"one") as client:
        told = served.reload()
        assert "no setting differs" in told.stdout and told.returncode == 0
        served.hang_up("reload: done")
        client.send(Pingreq())
        client.expect(Pingresp)
    os.kill(served.process.pid, 0)


def test_a_broker_without_a_file_reads_its_command_line_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tieline", "serve", "--listen", "tcp://127.0.0.1:0", "--data", str(tmp_path / "d")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        try:
            with dial(url, "c") as client:
                process.send_signal(signal.SIGHUP)
                client.send(Pingreq())
                client.expect(Pingresp)
        finally:
            process.terminate()


# --- certificates -----------------------------------------------------------------------------------------------------


def test_a_new_certificate_is_used_without_dropping_anybody(tmp_path: Path) -> None:
    def issue() -> Path:
        authority = trustme.CA()
        mine = authority.issue_cert("127.0.0.1")
        mine.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        return tmp_path / "authority.pem"

    first = trusting(issue())
    text = 'data = "d"\n[[listener]]\nurl = "tls://127.0.0.1:0"\ncertificate = "server.pem"\nkey = "server.pem"\n'
    served = Served(tmp_path, text)
    try:
        with dial(served.urls[0], "old", context=first) as old:
            second = trusting(issue())
            assert "server.pem: read again" in served.reload().stdout
            with dial(served.urls[0], "new", context=second):
                pass
            old.send(Pingreq())
            old.expect(Pingresp)
            (tmp_path / "server.pem").write_text("junk")
            told = served.reload()
            assert told.returncode == 1 and "the certificate or key cannot be used" in told.stderr
            with dial(served.urls[0], "newer", context=second):
                pass
    finally:
        served.close()


def test_the_strategy_between_brokers_changes_live_and_the_rest_of_the_overlay_does_not() -> None:
    old = Settings()
    new = msgspec.structs.replace(old, overlay=Overlay(strategy="tree", cluster="another"))
    assert {change.key: change.is_live for change in compare(old, new)} == {
        "overlay.strategy": True,
        "overlay.cluster": False,
    }
    assert merge(old, new).overlay == Overlay(strategy="tree", cluster=old.overlay.cluster)


async def _reload_while_it_ends() -> None:
    may_read = threading.Event()
    settings = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),))

    def reread() -> Settings:
        may_read.wait(PATIENCE_S)
        return settings

    server = Server(settings, reread=reread)
    async with server:
        under_way = asyncio.create_task(reload(server))
        await asyncio.sleep(0)
    may_read.set()
    with pytest.raises(ReloadError, match="this broker has ended while files were read"):
        await under_way


def test_a_broker_that_ends_while_it_reads_again_changes_nothing() -> None:
    asyncio.run(_reload_while_it_ends())
