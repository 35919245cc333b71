"""What would keep a broker from starting with some settings, and what it would warn of, without starting it.

Files are read and certificates tried by the functions that the start itself calls.  Nothing is written, and no address
is bound: whether one is free is known only to whoever binds it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tieline.access.users import closed_to_everybody, open_to_everybody
from tieline.conf import urls
from tieline.conf.paths import distrust, too_long
from tieline.conf.peers import with_identity
from tieline.conf.schema import Listener, Settings
from tieline.extras import is_installed, remedy
from tieline.net.address import load_certificate, secure_context
from tieline.net.auth import passwords
from tieline.net.listener import ListenError
from tieline.net.log import log
from tieline.net.peer_settings import read_client_context, read_key


def obstacles(settings: Settings) -> Iterator[str]:
    """Each reason for which a broker with these settings would refuse to start, as a sentence."""
    yield from _data(settings)
    for listener in settings.listener:
        yield from _certificates(with_identity(listener, settings.overlay))
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
    if settings.data is None:
        return
    place = Path(settings.data)
    if place.exists() and not place.is_dir():
        yield f"data = {settings.data} is not a directory."
    elif place.exists() and (problem := distrust(place)):
        yield f"data: {problem}."
    if problem := too_long(settings.data, settings.name):
        yield f"data: {problem}."


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
                read_key(path)
            except ListenError as problem:
                yield str(problem)
    try:
        read_client_context(settings)
    except ListenError as problem:
        yield str(problem)


def _http(settings: Settings) -> Iterator[str]:
    http = settings.http
    if http.url is None:
        return
    for library in ("starlette", "uvicorn", "prometheus_client"):
        if not is_installed(library):
            yield f'http.url needs the extra "web" ({library} is missing): {remedy("web")}.'
            break
    with suppress(urls.UrlError):  # what is no address has been said already
        if not urls.parse_http(http.url).is_loopback() and settings.auth.password_file is None:
            yield f"{http.url} could be read from other machines: set auth.password_file first, or stay local."
    if http.certificate is not None and http.key is not None:
        try:
            secure_context(http.certificate, http.key)
        except (OSError, ValueError) as problem:
            yield f"{http.url}: the certificate or key cannot be used: {problem}"
