"""Flags are read as mosquitto's clients read them."""

from __future__ import annotations

import pytest

from tieline.cli import options, pub, sub
from tieline.cli.flags import parse
from tieline.cli.trouble import Trouble


def pub_options(*words: str) -> pub.PubOptions:
    found = pub.PubOptions()
    parse([row for _title, rows in pub.GROUPS for row in rows], words, found)
    options.settle(found)
    return found


def sub_options(*words: str) -> sub.SubOptions:
    found = sub.SubOptions()
    parse([row for _title, rows in sub.GROUPS for row in rows], words, found)
    options.settle(found)
    return found


def test_a_flag_takes_the_next_word_whatever_it_looks_like() -> None:
    found = pub_options("-t", "--topic", "-m", "-5")
    assert found.topics == ["--topic"] and found.message == "-5"


def test_h_is_the_host() -> None:
    assert pub_options("-h", "example.org").host == "example.org"


def test_everything_about_the_connection() -> None:
    found = sub_options(
        *("-h", "h", "-p", "1", "-t", "a", "-t", "b", "-q", "2", "-i", "me", "-u", "u", "-P", "p", "-V", "5"),
        *("-k", "7", "-c", "-x", "-1", "--will-topic", "w", "--will-payload", "gone", "--will-qos", "1"),
        *("--will-retain", "-d", "-v"),
        *("-C", "3", "-W", "0.5", "-R", "-N", "-E", "--ws", "-A", "127.0.0.1"),
        *("-D", "connect", "receive-maximum", "20", "-D", "subscribe", "user-property", "k", "-v"),
    )  # fmt: skip
    assert (found.host, found.port, found.topics, found.qos, found.client_id) == ("h", 1, ["a", "b"], 2, "me")
    assert (found.username, found.password, found.version, found.keep_alive_s) == ("u", "p", 5, 7)
    assert (found.is_clean, found.session_expiry_s) == (False, 0xFFFF_FFFF)
    assert (found.will_topic, found.will_payload, found.will_qos, found.will_retain) == ("w", "gone", 1, True)
    assert (found.count, found.timeout_s, found.bind) == (3, 0.5, "127.0.0.1")
    assert all((found.is_verbose, found.skips_retained, found.is_without_newline, found.is_only_subscribing))
    assert [each.value for each in found.properties] == ["20", ("k", "-v")]


@pytest.mark.parametrize(
    ("words", "port"),
    [
        ((), 1883),
        (("--cafile", "x"), 8883),
        (("--ws",), 8080),
        (("--ws", "--tls-use-os-certs"), 8443),
        (("--ws", "-p", "9"), 9),
        (("-L", "mqtts://h/t"), 8883),
        (("-L", "mqtt://h:77/t"), 77),
        (("-L", "wss://h/t"), 8443),
    ],
)
def test_the_port_follows_from_the_transport(words: tuple[str, ...], port: int) -> None:
    assert sub_options(*words).port == port


def test_a_url_holds_everything() -> None:
    found = sub_options("-L", "mqtts://us%40er:p%3Aw@example.org:77/a/b%20c")
    assert (found.username, found.password, found.host, found.port) == ("us@er", "p:w", "example.org", 77)
    assert found.topics == ["a/b c"] and found.is_tls


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tpoic", "x"), "unknown option --tpoic; did you mean --topic?"),
        (("-Z",), "unknown option -Z."),
        (("word",), '"word" belongs to no option.'),
        (("-t",), "-t needs TOPIC."),
        (("-p", "x"), "-p x: expected a whole number from 1 to 65535."),
        (("-p", "0"), "from 1 to 65535"),
        (("-q", "3"), "from 0 to 2"),
        (("-W", "-1"), "a number of seconds"),
        (("-W", "inf"), "a number of seconds"),
        (("-V", "31"), "MQTT 3.1 is not supported"),
        (("-V", "6"), "expected 311 or 5"),
        (("-D", "publish", "user-property", "k"), "-D needs PACKET PROPERTY VALUE."),
        (("-D", "pub", "content-type", "x"), "the packet is one of"),
        (("-D", "publish", "colour", "x"), 'there is no property "colour"'),
        (("-D", "publish", "message-expiry-interval", "soon"), "takes a whole number"),
        (("-D", "publish", "topic-alias", "65536"), "too large"),
        (("-D", "publish", "receive-maximum", "1"), "does not apply"),
        (("-D", "publish", "content-type", "x"), "-D needs MQTT 5"),
        (("-x", "5"), "-x needs MQTT 5"),
        (("-c",), "needs a client identifier"),
        (("-i", "a", "-I", "b"), "exclude each other"),
        (("--insecure",), "--insecure goes with"),
        (("--cafile", "x", "--cert", "y"), "--cert and --key belong together"),
        (("--will-payload", "x"), "a will needs --will-topic"),
        (("--unix", "x", "--ws"), "plain connection"),
        (("-L", "http://h/t"), "expected mqtt://"),
        (("-L", "mqtt://h:99999/t"), "port"),
        (("-F", "%k"), "%k is not known"),
        (("-F", "100%"), "at the end means nothing"),
        (("-F", "\\q"), "is not known"),
        (("--retain-handling", "maybe"), "always, new, never"),
    ],
)
def test_a_mistake_gets_a_sentence(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Trouble) as caught:
        sub_options(*words)
    assert said in str(caught.value)
    assert caught.value.code == 2
