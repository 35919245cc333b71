"""Listener addresses are taken apart, put together again, and each common slip has its answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.conf.urls import DEFAULT_PORTS, ListenerUrl, UrlError, parse


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port"),
    [
        ("tcp://127.0.0.1:1883", "tcp", "127.0.0.1", 1883),
        ("tcp://localhost", "tcp", "localhost", 1883),
        ("tls://broker.example", "tls", "broker.example", 8883),
        ("ws://0.0.0.0", "ws", "0.0.0.0", 8080),
        ("wss://[::]", "wss", "::", 8443),
        ("tcp://[::1]:0", "tcp", "::1", 0),
        ("tcp://[fe80::1%eth0]:7", "tcp", "fe80::1%eth0", 7),
        ("ws://host:80/", "ws", "host", 80),
        ("peer://127.0.0.1", "peer", "127.0.0.1", 7883),
        ("peer+tls://broker.example", "peer+tls", "broker.example", 7884),
    ],
)
def test_an_address_is_taken_apart(text: str, scheme: str, host: str, port: int) -> None:
    url = parse(text)
    assert (url.scheme, url.host, url.port) == (scheme, host, port)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write tcp://127.0.0.1:1883"),
        ("127.0.0.1:1883", "write tcp://127.0.0.1:1883"),
        ("mqtt://h:1", "write tcp://h:1"),
        ("mqtts://h", "write tls://h"),
        ("ssl://h", "write tls://h"),
        ("https://h", "write wss://h"),
        ("TCP://h", "write tcp://h"),
        ("quic://h", "known are tcp, tls, ws, wss, peer, peer+tls and peer+unix"),
        ("tcp://", "names no host"),
        ("tcp://:1883", "0.0.0.0"),
        ("tcp://*:1883", "0.0.0.0"),
        ("tcp://h:1884:", "IPv6"),
        ("tcp://::1", "in brackets"),
        ("tcp://[::1", "unfinished"),
        ("tcp://[::1]1883", "unfinished"),
        ("tcp://[host]:1", "not an IPv6 address"),
        ("tcp://h:", "a port is a number"),
        ("tcp://h:x", "a port is a number"),
        ("tcp://h:-1", "a port is a number"),
        ("tcp://h:65536", "a port is a number"),
        ("tcp://h:١", "a port is a number"),
        ("tcp://h?x=1", "query"),
        ("tcp://u@h", "user name"),
        ("tcp://h#x", "fragment"),
        ("ws://h/mqtt", "every path"),
        ("tcp://a b", "space"),
        ("tcp://127.0.0.300", "not an IPv4 address"),
    ],
)
def test_a_slip_gets_a_sentence(text: str, said: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse(text)
    assert said in str(caught.value)


@given(
    st.sampled_from(sorted(DEFAULT_PORTS)),
    st.one_of(st.ip_addresses().map(str), st.from_regex(r"[a-z][a-z0-9-]{0,10}(\.[a-z]{2,5})?", fullmatch=True)),
    st.integers(0, 65_535),
)
def test_printing_and_parsing_are_inverse(scheme: str, host: str, port: int) -> None:
    url = ListenerUrl(scheme=scheme, host=host, port=port)  # type: ignore[arg-type]
    assert parse(str(url)) == url


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        url = parse(f"tcp://{text}")
    except UrlError:
        return
    assert url.host and 0 <= url.port <= 65_535


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LOCALHOST"])
def test_loopback(host: str) -> None:
    assert parse(f"tcp://{host}:1").is_loopback()


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.168.0.1", "localhost.example.org", "10.0.0.1"])
def test_open_to_the_network(host: str) -> None:
    assert not parse(f"tcp://{host}:1").is_loopback()


def test_what_a_scheme_implies() -> None:
    assert [(parse(f"{scheme}://h").is_tls, parse(f"{scheme}://h").is_websocket) for scheme in DEFAULT_PORTS] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
        (False, False),
        (True, False),
    ]


def test_a_socket_in_the_file_system_is_on_this_machine() -> None:
    url = parse("peer+unix:///run/tieline/peers")
    assert (url.path, url.host, url.port) == ("/run/tieline/peers", "", 0)
    assert url.is_peer and url.is_loopback() and not url.is_tls
    assert str(url) == "peer+unix:///run/tieline/peers"
