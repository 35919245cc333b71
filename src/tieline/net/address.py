"""An address before anybody connects to it: its socket, and the certificate and the ciphers of TLS.

Whatever listens begins here: MQTT, the pages beside the broker, and the log server.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any  # Any: an address is of another shape in each family

from tieline.net.trust import Context

if TYPE_CHECKING:
    from tieline.conf.schema import Listener

#: An option of the socket: its level, its name and its value.
Option = tuple[int, int, int]


def bind(host: str, port: int, *, backlog: int, options: tuple[Option, ...] = ()) -> socket.socket:
    """A socket that listens, and does not block; what it accepts begins with the same options.  Raises OSError."""
    sock, place = _socket_for(host, port)
    try:
        for option in options:
            sock.setsockopt(*option)
        sock.setblocking(False)
        sock.bind(place)
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def try_address(host: str, port: int) -> None:
    """See whether an address could be listened on, without listening; raises OSError."""
    sock, place = _socket_for(host, port)
    with sock:
        sock.bind(place)


def _socket_for(host: str, port: int) -> tuple[socket.socket, Any]:
    """A socket that takes an address whose last connections are still fading away, and the address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock, place


def bind_path(path: str, *, backlog: int) -> socket.socket:
    """The same in the file system, for this user alone; a socket that nobody serves any more is replaced."""
    with suppress(FileNotFoundError):
        if not Path(path).is_socket():
            if Path(path).exists():
                raise OSError(errno.EEXIST, "something that is no socket is in the way")
        elif _is_served(path):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        else:
            Path(path).unlink()
    sock = socket.socket(socket.AF_UNIX)
    old = os.umask(0o177)
    try:
        sock.setblocking(False)
        sock.bind(path)
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(old)
    return sock


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.setblocking(False)
        # EAGAIN: somebody is there who has no room for us
        return sock.connect_ex(path) in (0, errno.EAGAIN)


def server_context(listener: Listener) -> Context:
    """What TLS needs on a listener; client certificates are required where an authority is given."""
    if listener.certificate is None or listener.key is None:
        raise ValueError(f"{listener.url} needs both certificate and key")
    context = secure_context(listener.certificate, listener.key)
    if listener.client_ca is not None:
        context.believe(listener.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def secure_context(certificate: str | Path, key: str | Path) -> Context:
    """TLS 1.2 and later, with forward secrecy and authenticated ciphers only; raises as loading a certificate does."""
    context = _strict_context(ssl.PROTOCOL_TLS_SERVER, certificate, key)
    # each ticket costs a write and memory per connection; resumption still works with one
    context.num_tickets = 1
    return context


def client_context(certificate: str, key: str, authorities: str) -> Context:
    """The same for the end that dials: it shows its own certificate, and wants one that is for the name it dialled."""
    context = _strict_context(ssl.PROTOCOL_TLS_CLIENT, certificate, key)
    context.believe(authorities)
    return context


def _strict_context(side: int, certificate: str | Path, key: str | Path) -> Context:
    context = Context(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # of TLS 1.2; those of 1.3 are all of this kind
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    load_certificate(context, certificate, key)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    return context


def load_certificate(context: ssl.SSLContext, certificate: str | Path, key: str | Path | None) -> None:
    """Give a context its certificate; raises OSError, or ValueError for a key that has a password.

    Without a function to ask, OpenSSL would ask on the terminal, and whoever starts at boot would wait for somebody to
    type.
    """
    context.load_cert_chain(certificate, key, password=_refuse_password)


def _refuse_password() -> str:
    raise ValueError("the key is encrypted with a password")
