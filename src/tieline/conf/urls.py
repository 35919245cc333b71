"""Addresses of listeners and of HTTP: ``scheme://host:port`` taken apart, with an answer for each common slip."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, cast

Scheme = Literal["tcp", "tls", "ws", "wss", "peer", "peer+tls", "peer+unix"]

#: Ports that clients try first: IANA's for MQTT, mosquitto's documentation's for WebSocket.
DEFAULT_PORTS: dict[str, int] = {
    "tcp": 1883,
    "tls": 8883,
    "ws": 8080,
    "wss": 8443,
    "peer": 7883,
    "peer+tls": 7884,
}

#: What other programs call the same thing.
_ALIASES = {"mqtt": "tcp", "mqtts": "tls", "ssl": "tls", "http": "ws", "https": "wss", "peers": "peer+tls"}
#: What sockaddr_un can hold on Linux, without the closing zero byte.
_LONGEST_PATH = 107


#: Says that every packet on a listener carries the extra byte of the priority header.
HEADER = "?header=priority"
#: How the same address is called as an MQTT listener.
_SCHEMES = {"http": "tcp", "https": "tls"}


class UrlError(ValueError):
    """An address that no listener can use; the text is a whole sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerUrl:
    """One listener's address.  Port 0 asks the system for a free port."""

    scheme: Scheme
    #: Empty for a socket in the file system, as the port is 0.
    host: str
    port: int
    #: Every packet carries the extra byte of the priority header.
    has_header: bool = False
    #: Of a socket in the file system; empty for all others.
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.scheme}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{HEADER if self.has_header else ''}"

    @property
    def is_tls(self) -> bool:
        return self.scheme in {"tls", "wss", "peer+tls"}

    @property
    def is_peer(self) -> bool:
        """Whether other brokers connect there, and no clients."""
        return self.scheme.startswith("peer")

    @property
    def is_unix(self) -> bool:
        return self.scheme == "peer+unix"

    @property
    def is_websocket(self) -> bool:
        return self.scheme in {"ws", "wss"}

    def is_loopback(self) -> bool:
        """True when only programs on this machine can reach the address; a name is trusted only if it is localhost."""
        return self.is_unix or is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a name or an address stands for this machine alone; of names only localhost does."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse(text: str) -> ListenerUrl:
    """Take an address apart, or raise UrlError with a sentence that says how to write it."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise UrlError(f'"{text}" has no scheme: write tcp://{text or "127.0.0.1:1883"}, or tls://, ws://, wss://.')
    if scheme == "peer+unix":
        return ListenerUrl(scheme="peer+unix", host="", port=0, path=_path(text, rest))
    if scheme not in DEFAULT_PORTS:
        known = _ALIASES.get(scheme.lower()) or (scheme.lower() if scheme.lower() in DEFAULT_PORTS else None)
        advice = f"write {known}://{rest}" if known else "known are tcp, tls, ws, wss, peer, peer+tls and peer+unix"
        raise UrlError(f'"{text}" has the unknown scheme "{scheme}": {advice}.')
    has_header = rest.endswith(HEADER)
    rest = rest.removesuffix(HEADER)
    for mark, what in (("?", f"a query other than {HEADER}"), ("#", "a fragment"), ("@", "a user name")):
        if mark in rest:
            raise UrlError(f'"{text}" has {what}: a listener is scheme://host:port.')
    if "/" in rest.removesuffix("/"):
        raise UrlError(f'"{text}" has a path: leave it out; a WebSocket listener serves every path.')
    host, port = _split(text, rest.removesuffix("/"))
    return ListenerUrl(
        scheme=cast("Scheme", scheme),
        host=_host(text, host),
        port=_port(text, port, DEFAULT_PORTS[scheme]),
        has_header=has_header,
    )


def parse_http(text: str) -> ListenerUrl:
    """Take an address apart, or raise UrlError with a sentence that says how to write it."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise UrlError(f'"{text}" is no address for HTTP: write http://127.0.0.1:9883, or https://.')
    host = rest.removesuffix("/")
    if not host.rpartition("]")[2].rpartition(":")[2].isdigit() or ":" not in host.rpartition("]")[2]:
        raise UrlError(f'"{text}" has no port: write {scheme}://{host or "127.0.0.1"}:9883.')
    return parse(f"{_SCHEMES[scheme]}://{rest}")


def _path(text: str, path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise UrlError(f'"{text}" names no socket: write peer+unix:///path/to/socket, with three slashes.')
    if len(path.encode()) > _LONGEST_PATH or "\0" in path:
        raise UrlError(f'"{text}" is longer than the {_LONGEST_PATH} bytes that the path of a socket may have.')
    return path


def _split(text: str, rest: str) -> tuple[str, str | None]:
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise UrlError(f'"{text}" has an unfinished [address]: write it as [::1]:1883.')
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise UrlError(f'"{text}" has brackets around "{host}", which is not an IPv6 address.') from None
        return host, tail[1:] if tail else None
    if rest.count(":") > 1:
        raise UrlError(f'"{text}" looks like an IPv6 address: put it in brackets, as in [::1]:1883.')
    host, colon, port = rest.partition(":")
    return host, port if colon else None


def _host(text: str, host: str) -> str:
    if not host or host == "*":
        raise UrlError(f'"{text}" names no host: write 127.0.0.1 for this machine only, 0.0.0.0 or [::] for everybody.')
    if any(letter.isspace() for letter in host):
        raise UrlError(f'"{text}" has a space in its host.')
    # "127.0.0.300" would otherwise be looked up as a name, and fail with an answer about names.
    if host.replace(".", "").isdigit():
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise UrlError(f'"{text}" has the host "{host}", which is not an IPv4 address.') from None
    return host


def _port(text: str, port: str | None, default: int) -> int:
    if port is None:
        return default
    if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise UrlError(f'"{text}" has the port "{port}": a port is a number from 0 (any free one) to 65535.')
    return int(port)
