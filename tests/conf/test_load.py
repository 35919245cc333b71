"""A configuration file becomes exactly its settings, or an error with a line; never a default in disguise."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from tieline.conf.error import ConfError
from tieline.conf.load import load, loads
from tieline.conf.schema import Limits, Listener, Settings


def refusal(text: str) -> ConfError:
    with pytest.raises(ConfError) as caught:
        loads(text, "broker.toml")
    return caught.value


def test_an_empty_file_means_the_defaults() -> None:
    assert loads("") == Settings()


def test_every_kind_of_value_is_read() -> None:
    settings = loads("""
        name = "edge"
        [[listener]]
        url = "tcp://127.0.0.1:0"
        connections = 5
        [[listener]]
        url = "ws://[::1]:9001"
        [limits]
        queue_messages = "none"
        connect_timeout_s = 3
        inflight = 1
        [mqtt]
        maximum_qos = 1
        full = "oldest"
        retain_available = false
    """)
    assert settings.name == "edge"
    assert settings.listener == (
        Listener(url="tcp://127.0.0.1:0", connections=5),
        Listener(url="ws://[::1]:9001"),
    )
    assert settings.limits == Limits(queue_messages="none", connect_timeout_s=3.0, inflight=1)
    assert (settings.mqtt.maximum_qos, settings.mqtt.full, settings.mqtt.retain_available) == (1, "oldest", False)


def test_zero_means_zero() -> None:
    assert loads("[limits]\nconnections = 0").limits.connections == 0


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[limits]\n\nqueue_bytess = 1", 3, 'did you mean "queue_bytes"?'),
        ("nmae = 'x'", 1, 'did you mean "name"?'),
        ("[limts]\ninflight = 3", 1, 'did you mean "limits"?'),
        ("inflight = 3", 1, 'did you mean "limits.inflight"?'),
        ("frobnicate = 1", 1, "known here: auth, claim, class, content, data, event, groups"),
        ("[[listener]]\nurl = 'tcp://a'\n[[listener]]\nurl = 'tcp://b'\nprot = 1", 5, '"listener[2].prot"'),
        ("limits = { inflight = 3, ouch = 4 }", 1, '"limits.ouch"'),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_nearest_key(text: str, line: int, said: str) -> None:
    problem = refusal(text)
    assert problem.line == line
    assert said in problem.text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "[limits]\npacket_bytes = 'big'",
            2,
            'limits.packet_bytes = "big" is refused: it takes a whole number from 16',
        ),
        ("[limits]\npacket_bytes = 3", 2, "Largest packet accepted"),
        ("[limits]\npacket_bytes = true", 2, "= true is refused"),
        ("[limits]\ninflight = 65536", 2, "from 1 to 65,535"),
        ("[limits]\nconnections = -1", 2, 'a whole number from 0 up or "none"'),
        ("[limits]\nconnections = 'lots'", 2, '"none"'),
        ("[limits]\nconnections = 1.5", 2, "= 1.5 is refused"),
        ("[limits]\nconnect_timeout_s = -0.1", 2, "a number from 0 up"),
        ("[limits]\nconnect_timeout_s = inf", 2, "a finite number"),
        ("[limits]\nconnect_timeout_s = nan", 2, "refused"),
        ("[mqtt]\nmaximum_qos = 3", 2, "it takes 0, 1 or 2"),
        ("[mqtt]\nfull = 'drop'", 2, 'it takes "oldest", "pause" or "refuse"'),
        ("[mqtt]\nkeep_alive_max_s = 0", 2, "from 1 to 65,535"),
        ("[mqtt]\nretain_available = 1", 2, "it takes true or false"),
        ("name = 1979-05-27", 1, "it takes a text"),
        ("\n[listener]\nurl = 'tcp://a'", 2, "written as [[listener]]"),
        ("limits = 3", 1, "written as [limits]"),
        ("[[listener]]\ncertificate = 'x.pem'", 1, 'listener[1] lacks "url"'),
    ],
)
def test_a_wrong_value_is_explained_with_its_line_and_meaning(text: str, line: int, said: str) -> None:
    problem = refusal(text)
    assert problem.line == line
    assert said in problem.text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("name = 'x'\nlimits.inflight = = 3", 2, "column 19"),
        ("name = 'x'\nname = 'y'", 2, "column"),
        ("name = [1,", 1, "column"),
        ("name =\n", 1, "column"),
        ("a = " + "[" * 20_000, None, "nested too deeply"),
        ("a = " + "9" * 20_000, None, "too many digits"),
    ],
)
def test_a_syntax_error_has_line_and_column(text: str, line: int | None, said: str) -> None:
    problem = refusal(text)
    assert problem.line == line
    assert said in problem.text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("listener = []", 1, "at least one [[listener]]"),
        ("[[listener]]\nurl = 'mqtt://a'", 2, "write tcp://a"),
        ("[[listener]]\nurl = 'tls://a'\nkey = 'k'", 1, '"certificate" is missing'),
        ("[[listener]]\nurl = 'tcp://a'\nkey = 'k'", 3, "write tls:// instead"),
        ("[[listener]]\nurl = 'ws://a'\nclient_ca = 'k'", 3, "write wss:// instead"),
        (
            "[[listener]]\nurl = 'tls://a'\ncertificate = 'c'\nkey = 'k'\nclient_ca = ''",
            5,
            "client_ca is empty",
        ),
        ("[[listener]]\nurl = 'tcp://a:1'\n[[listener]]\nurl = 'ws://a:1'", 4, "another listener already has"),
        ("[[listener]]\nurl = 'tcp://a:1'\norigins = ['https://b']", 3, "write ws:// or wss://"),
        ("[[listener]]\nurl = 'ws://a:1'\norigins = ['b.example']", 3, "is no origin"),
        ("[[listener]]\nurl = 'ws://a:1'\norigins = ['https://b/page']", 3, "is no origin"),
        ("name = 'a/b'", 1, "letters, digits"),
        ("name = ''", 1, "letters, digits"),
        ("data = ''", 1, "name a directory"),
    ],
)
def test_rules_between_keys(text: str, line: int, said: str) -> None:
    problem = refusal(text)
    assert problem.line == line
    assert said in problem.text


def test_two_listeners_may_both_take_a_free_port() -> None:
    text = "[[listener]]\nurl = 'tcp://127.0.0.1:0'\n[[listener]]\nurl = 'ws://127.0.0.1:0'"
    assert len(loads(text).listener) == 2


def test_an_error_reads_like_a_compiler_message() -> None:
    assert str(refusal("nmae = 'x'")) == 'broker.toml:1: "nmae" is not a setting; did you mean "name"?'


def test_a_long_value_is_shortened() -> None:
    assert len(refusal(f"mqtt = {{ full = '{'x' * 5000}' }}").text) < 400


@pytest.mark.parametrize(
    ("data", "line", "said"),
    [
        (codecs.BOM_UTF8 + b"name = 'x'", 1, "byte order mark"),
        ("name = 'x'".encode("utf-16"), 1, "UTF-16"),
        ("name = 'x'".encode("utf-16-le"), 1, "UTF-16"),
        ("name = 'x'".encode("utf-32-be"), 1, "UTF-32"),
        (b"name = 'x'\n# caf\xe9\n", 2, "0xE9 is not UTF-8"),
    ],
)
def test_other_encodings_are_explained(tmp_path: Path, data: bytes, line: int, said: str) -> None:
    file = tmp_path / "broker.toml"
    file.write_bytes(data)
    with pytest.raises(ConfError) as caught:
        load(file)
    assert caught.value.line == line
    assert said in caught.value.text


def test_a_missing_file_and_a_directory_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfError, match="no such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(ConfError, match="is a directory"):
        load(tmp_path)


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    certified = "certificate = 'c.pem'\nkey = '/abs/k.pem'\n"
    file.write_text(
        f"data = 'd'\n[[listener]]\nurl = 'tls://a'\n{certified}[http]\nurl = 'https://localhost:9883'\n{certified}"
        "[auth]\npassword_file = 'users'\n"
    )
    settings = load(file)
    assert (settings.http.certificate, settings.http.key) == (str(tmp_path / "c.pem"), "/abs/k.pem")
    assert settings.auth.password_file == str(tmp_path / "users")
    assert settings.data == str(tmp_path / "d")
    assert settings.listener[0].certificate == str(tmp_path / "c.pem")
    assert settings.listener[0].key == "/abs/k.pem"
    assert settings.listener[0].client_ca is None
