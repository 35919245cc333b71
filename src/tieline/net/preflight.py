"""What would keep a broker from starting with some settings, and what it would warn of, without starting it.

Files are read and certificates tried by the functions that the start itself calls.  Nothing is written.  An address is
tried for a moment, but nobody listens there: one that is in use is none that could not be listened on, since the broker
that runs with these settings may be the one that uses it.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tieline.access.users import closed_to_everybody, open_to_everybody
from tieline.conf import urls
from tieline.conf.paths import distrust, management_socket, too_long
from tieline.conf.peers import with_identity
from tieline.conf.schema import Listener, Settings
from tieline.extras import is_installed, remedy
from tieline.net.address import load_certificate, secure_context, try_address
from tieline.net.auth import passwords
from tieline.net.listener import ListenError
from tieline.net.log import log
from tieline.net.peer_settings import read_client_context, read_keys

#: What the extra "web" brings.
_LIBRARIES: Final = ("starlette", "uvicorn", "prometheus_client")
#: File systems of the kernel, in which nobody can keep anything.
_OF_THE_KERNEL: Final = frozenset(
    ("proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "tracefs", "securityfs", "configfs", "bpf", "pstore")
)


def obstacles(settings: Settings) -> Iterator[str]:
    """Each reason for which a broker with these settings would refuse to start, as a sentence."""
    yield from _data(settings)
    for listener in settings.listener:
        yield from _certificates(with_identity(listener, settings.overlay))
        with suppress(urls.UrlError):  # what is no address has been said already
            yield from _address(urls.parse(listener.url))
    yield from _users(settings)
    yield from _secrets(settings)
    yield from _http(settings)


def warnings(settings: Settings) -> Iterator[str]:
    """What is allowed, and probably not meant."""
    for url in closed_to_everybody(settings, has_authenticator=False):
        yield (
            f"{url} lets nobody in: set auth.password_file, or user_from with client_ca, or auth.anonymous (now "
            f"{settings.auth.anonymous})"
        )
    for url in open_to_everybody(settings):
        yield f"{url} can be reached from other machines, and every client is let in"
    path = settings.auth.password_file
    if path is not None and (exposure := passwords.exposure(path)):
        yield exposure


def warn(settings: Settings) -> None:
    """Have the log tell of it."""
    for sentence in warnings(settings):
        log.warning("%s", sentence)


def _data(settings: Settings) -> Iterator[str]:
    socket = management_socket(settings.data, settings.name)
    if problem := too_long(settings.data, settings.name):
        yield f"data: {problem}."
    elif socket.exists() and not socket.is_socket():
        yield f"{socket} is in the way: it is not a socket, and not ours to remove."
    if settings.data is None:
        if socket.parent.exists() and (problem := distrust(socket.parent)):
            yield f"{problem}."
        return
    place = Path(settings.data)
    if place.exists() and not place.is_dir():
        yield f"data = {settings.data} is not a directory."
    elif place.exists() and (problem := distrust(place)):
        yield f"data: {problem}."
    elif problem := _unwritable(place):
        yield f"data = {settings.data} cannot be used: {problem}."


def _unwritable(place: Path) -> str | None:
    """Why nothing can be kept in a directory, or the directory not be made; None if nothing speaks against it."""
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        return f"{place} is not a directory"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{place} cannot be written by this user"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place} is on a file system that is read only"
    if (kind := _file_system(place)) in _OF_THE_KERNEL:
        return f"{place} is on a file system of the kernel ({kind}), which keeps nothing"
    return None


def _file_system(place: Path) -> str:
    """Of which kind the file system of a directory is; empty where the system does not say."""
    device = place.stat().st_dev
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            mount, _dash, source = line.partition(" - ")
            if mount.split()[2] == f"{os.major(device)}:{os.minor(device)}":
                return source.split()[0]
    return ""


def _address(url: urls.ListenerUrl) -> Iterator[str]:
    if url.is_unix:
        path = Path(url.path)
        if path.exists() and not path.is_socket():
            yield f"cannot listen on {url}: something that is no socket is in the way."
        elif not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
            yield f"cannot listen on {url}: {path.parent} is no directory that this user can write."
        return
    try:
        try_address(url.host, url.port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            yield f"cannot listen on {url}: {error.strerror or error}."


def _certificates(listener: Listener) -> Iterator[str]:
    if listener.certificate is None or listener.key is None:
        return
    missing = [
        name for name in (listener.certificate, listener.key, listener.client_ca) if name and not Path(name).is_file()
    ]
    for name in missing:
        yield f"{listener.url}: there is no file {name}."
    if missing:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        load_certificate(context, listener.certificate, listener.key)
    except (OSError, ValueError) as problem:
        yield f"{listener.url}: {listener.certificate} and {listener.key} cannot be used together: {problem}"
    if listener.client_ca is not None:
        try:
            context.load_verify_locations(listener.client_ca)
        except OSError as problem:
            yield f"{listener.url}: {listener.client_ca} cannot be used: {problem}"


def _users(settings: Settings) -> Iterator[str]:
    if settings.auth.password_file is not None:
        try:
            passwords.read(settings.auth.password_file)
        except passwords.PasswordFileError as problem:
            yield f"auth.password_file: {problem}"


def _secrets(settings: Settings) -> Iterator[str]:
    """What brokers prove to each other with."""
    overlay = settings.overlay
    for path in (overlay.key_file, *(peer.key_file for peer in settings.peer)):
        if path is not None:
            try:
                read_keys(path)
            except ListenError as problem:
                yield str(problem)
    try:
        read_client_context(settings)
    except ListenError as problem:
        yield str(problem)


def has_web() -> bool:
    """Whether everything is installed that pages are served with."""
    return all(map(is_installed, _LIBRARIES))


def without_web(settings: Settings) -> str | None:
    """Why the pages that these settings ask for cannot be served by what is installed; None if they can."""
    http = settings.http
    missing = next((name for name in _LIBRARIES if not is_installed(name)), None)
    if missing is None or (http.url is None and http.page != "on"):
        return None
    key = "http.page" if http.url is None else "http.url"
    return f'{key} needs the extra "web" ({missing} is missing): {remedy("web")}.'


def _http(settings: Settings) -> Iterator[str]:
    http = settings.http
    if problem := without_web(settings):
        yield problem
    if http.url is None:
        return
    with suppress(urls.UrlError):  # what is no address has been said already
        url = urls.parse_http(http.url)
        if not url.is_loopback() and settings.auth.password_file is None:
            yield f"{http.url} could be read from other machines: set auth.password_file first, or stay local."
        yield from _address(url)
    if http.certificate is not None and http.key is not None:
        try:
            secure_context(http.certificate, http.key)
        except (OSError, ValueError) as problem:
            yield f"{http.url}: the certificate or key cannot be used: {problem}"
