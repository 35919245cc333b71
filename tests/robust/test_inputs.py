"""Files and payloads that cannot be used: a broker that is started with them says why in one sentence and ends, and one
that is sent them goes on."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sqlite3
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme

from tests.kits.certificates import Certificates, issue
from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S, until
from tests.robust.arena import Pair
from tieline.conf.schema import Attribute, Event, Listener, Settings
from tieline.net.store.durable import Durable
from tieline.net.store.frames import Keep
from tieline.net.store.schema import FILE, STEPS
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

LISTENER = '[[listener]]\nurl = "tcp://127.0.0.1:0"\n'
TLS = '[[listener]]\nurl = "tls://127.0.0.1:0"\ncertificate = "certificate.pem"\nkey = "key.pem"\n'


def serve(folder: Path, text: str) -> tuple[int, list[str]]:
    """Exit code and last words of a broker that is started with a configuration."""
    config = folder / "broker.toml"
    if not config.exists():
        config.write_text(text)
    command = [sys.executable, "-m", "tieline", "serve", "--config", str(config), "--log-level", "error"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL
    )
    assert ended.stdout == "", "it was never ready"
    return ended.returncode, ended.stderr.splitlines()


def refused(folder: Path, text: str, *said: str) -> None:
    """It does not start, and one sentence says why."""
    code, words = serve(folder, text)
    assert code in (1, 2)
    assert len(words) == 1 and words[0].startswith("tieline: "), words
    for word in said:
        assert word in words[0]


# --- configuration and password file ----------------------------------------------------------------------------------

CONFIGURATIONS = {
    "no TOML": ("name = = 3", "broker.toml:1", "column 8"),
    "a key that does not exist": ("nmae = 'x'", "broker.toml:1", "did you mean"),
    "a value of another kind": ("[limits]\ninflight = 'many'", "broker.toml:2", "it takes a whole number"),
    "nested without end": ("a = " + "[" * 20_000, "nested too deeply"),
    "a number without end": ("[limits]\ninflight = " + "9" * 20_000, "too many digits"),
    "a zero byte": ("name = 'a\0b'", "broker.toml:1", "is not TOML"),
    "a rule for a group that nobody is in": (
        '[[rule]]\nallow = "all"\nfilter = "a"\ngroups = ["crew"]',
        "broker.toml:4",
        "crew",
    ),
    "a filter that is none": ('[[rule]]\nallow = "all"\nfilter = "a/#/b"', "broker.toml:3"),
    "an event type without a payload that exists": ('[event.x]\ntopic = "a"\npayload = "xml"', "broker.toml:3"),
    "a log without a place": ('[log]\ncapture = ["#"]', "data"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_that_cannot_be_meant_starts_nothing(name: str, tmp_path: Path) -> None:
    refused(tmp_path, *CONFIGURATIONS[name])


PASSWORD_FILES: dict[str, tuple[bytes | None, str]] = {
    "absent": (None, "no such file"),
    "no text": (b"\xff\xfe\x00", "not written in UTF-8"),
    "no hash": (b"ann:secret password\n", "users:1"),
    "a hash of mosquitto": (b"ann:$7$101$abc$def\n", "not an argon2id hash"),
    "a user twice": (
        b"ann:%b\nann:%b\n" % ((b"$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA",) * 2),
        ":2",
    ),
}


@pytest.mark.parametrize("name", PASSWORD_FILES)
def test_a_password_file_that_cannot_be_used_starts_nothing(name: str, tmp_path: Path) -> None:
    content, said = PASSWORD_FILES[name]
    if content is not None:
        (tmp_path / "users").write_bytes(content)
    code, words = serve(tmp_path, f'{LISTENER}[auth]\npassword_file = "users"\n')
    assert code == 1 and len(words) == 1 and said in words[0], words
    assert "secret password" not in words[0]


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture(name="made")
def _made(tmp_path: Path) -> Certificates:
    return issue(tmp_path)


CERTIFICATES: dict[str, tuple[Callable[[Certificates], object], str]] = {
    "no certificate": (lambda made: made.certificate.unlink(), "No such file"),
    "no key": (lambda made: made.key.unlink(), "No such file"),
    "nonsense": (lambda made: made.certificate.write_bytes(os.urandom(999)), "cannot be used"),
    "cut off": (lambda made: made.certificate.write_bytes(made.certificate.read_bytes()[:200]), "cannot be used"),
    "the key of another": (
        lambda made: trustme.CA().issue_cert("x").private_key_pem.write_to_path(str(made.key)),
        "mismatch",
    ),
    "a key with a password": (Certificates.encrypt_key, "the key is encrypted with a password"),
}


@pytest.mark.parametrize("name", CERTIFICATES)
@pytest.mark.parametrize("door", ["tls", "https"])
def test_a_certificate_that_cannot_be_used_starts_nothing(
    name: str, door: str, made: Certificates, tmp_path: Path
) -> None:
    spoil, said = CERTIFICATES[name]
    spoil(made)
    web = '[http]\nurl = "https://127.0.0.1:0"\ncertificate = "certificate.pem"\nkey = "key.pem"\n'
    refused(tmp_path, TLS if door == "tls" else LISTENER + web, said, "cannot be used")


@pytest.mark.parametrize("when", ["expired", "not yet"])
def test_a_client_certificate_out_of_its_time_is_refused(when: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    now, day = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    begins, ends = (now - 2 * day, now - day) if when == "expired" else (now + day, now + 2 * day)
    client = authority.issue_cert("client@example.org", not_before=begins, not_after=ends)
    server = authority.issue_cert("127.0.0.1")
    for name, blob in (
        ("ca", authority.cert_pem),
        ("key", server.private_key_pem),
        ("cert", server.cert_chain_pems[0]),
    ):
        blob.write_to_path(str(tmp_path / name))
    names = {"certificate": "cert", "key": "key", "client_ca": "ca"}
    files = {key: str(tmp_path / name) for key, name in names.items()}
    with BrokerThread(Settings(listener=(Listener(url="tls://127.0.0.1:0", **files),))) as broker:  # type: ignore[arg-type]  # paths
        context = ssl.create_default_context(cafile=files["client_ca"])
        client.configure_cert(context)
        with pytest.raises((ssl.SSLError, ConnectionError)), Dial(broker.urls[0], context=context) as late:
            late.connect("late")
        until(lambda: broker.ask(lambda core: core.account.closed["tls_handshake_failed"]), "it is counted")


# --- the files of a store ---------------------------------------------------------------------------------------------


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    """A store that was used before."""
    store = Durable(tmp_path / "data", Keep())
    store.open()
    store.close()
    return tmp_path / "data"


def _replace_by_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _replace_by_file(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_text("")


def _newer(data: Path) -> None:
    with sqlite3.connect(data / FILE) as db:
        db.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    db.close()


STORES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nonsense": (lambda data: (data / FILE).write_bytes(os.urandom(9_999)), "tieline store"),
    "cut off": (lambda data: os.truncate(data / FILE, 8_192), "tieline store"),
    "empty": (lambda data: os.truncate(data / FILE, 0), "tieline.db"),
    "gone": (lambda data: (data / FILE).unlink(), "tieline.db"),
    "of a newer program": (_newer, "use a newer one"),
    "a directory in its place": (lambda data: _replace_by_directory(data / FILE), "tieline.db"),
    "a file in place of the directory": (_replace_by_file, "data"),
}


@pytest.mark.parametrize("name", STORES)
def test_a_store_that_cannot_be_used_starts_nothing_and_is_left_as_it_is(name: str, data: Path, tmp_path: Path) -> None:
    spoil, said = STORES[name]
    for path in data.glob("*-wal"):
        path.unlink()
    spoil(data)
    before = (data / FILE).read_bytes() if (data / FILE).is_file() else None
    refused(tmp_path, f'data = "data"\n{LISTENER}', said)
    assert before is None or (data / FILE).read_bytes() == before


# --- payloads ---------------------------------------------------------------------------------------------------------

PAYLOADS = {
    "json": (b"{", b'{"n":}', b"[" * 50_000, b'{"n":' + b"9" * 50_000, b'{"n":1e999}', b'"\xff"', b"", b"nan", b"\x00"),
    "cbor": (b"", b"\x81" * 10_000, b"\x9b" + b"\xff" * 8, b"\x61\xff", b"\xa1\xd8\x1c\xa1\x01\x02\x03", b"\xbf" * 999),
    "sparkplug": (b"\xff", b"\x12", b"\x12\x02\x0a\x05", b"\x12\x03\x0a\x01\xff", b"\x12\x00" * 9_999, b"\x0b" * 999),
    "number": (b"", b"one", b"0x10", b"1e999", b"nan", b"-", b"\xff", b"9" * 50_000),
}
#: Each says that n is 5.
GOOD = {
    "json": b'{"n": 5}',
    "cbor": b"\xa1\x61n\x05",
    "sparkplug": b"\x12\x0c\x0a\x01n\x69" + struct.pack("<d", 5.0),
    "number": b"5",
}


@pytest.fixture(name="reading", scope="module")
def _reading() -> Iterator[BrokerThread]:
    pytest.importorskip("cbor2")
    pytest.importorskip("google.protobuf")
    attributes = (Attribute(name="n"),)
    events = {kind: Event(topic=f"{kind}/+", payload=kind, attributes=attributes) for kind in PAYLOADS}  # type: ignore[arg-type]  # their names
    settings = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),), event=events)
    with BrokerThread(settings) as broker:
        yield broker


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize("qos", [0, 1])
def test_a_payload_that_cannot_be_read_meets_no_condition_and_is_delivered_all_the_same(
    reading: BrokerThread, kind: str, qos: int
) -> None:
    url = reading.urls[0]
    pair = Pair(url)
    with dial(url, "plain") as plain, dial(url, "picky") as picky, dial(url, "publisher") as publisher:
        plain.subscribe(f"{kind}/x")
        for condition in ("n>0", "n<=0", "changed(n)"):
            assert picky.subscribe(f"$where/{quote(condition)}/{kind}/x").reasons == (0,)
        before = reading.ask(lambda core: core.account.unreadable)
        for number, payload in enumerate(PAYLOADS[kind], 1):
            publisher.send(Publish(topic=f"{kind}/x", payload=payload, qos=qos, packet_id=qos * number))
            assert plain.expect(Publish).payload == payload
        publisher.send(Publish(topic=f"{kind}/x", payload=GOOD[kind]))
        assert picky.expect(Publish).payload == GOOD[kind], "the first one that says anything"
        assert reading.ask(lambda core: core.account.unreadable) > before
    pair.stop()
    assert not reading.ask(lambda core: core.account.closed["internal_error"])
