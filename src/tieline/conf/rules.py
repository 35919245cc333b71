"""Rules that join several settings, beyond what the type of one key can say.

Those of event types and those of access have files of their own; this one asks them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tieline.conf import access_rules, events, peers, published, urls
from tieline.conf.describe import Finding, KeyPath
from tieline.conf.filters import flaw
from tieline.conf.quantities import bound, seconds
from tieline.conf.schema import Class, Http, Listener, Settings

_REORDERED = (
    "two messages of one publisher on one topic could get different levels and change their order, which "
    "[MQTT-4.6.0-6] forbids. Declare the topic in priority.unordered, or give the level by topic."
)

#: As browsers write it, in small letters and without a path.
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?")


#: The name of a reader becomes a file name.
_READER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: The name becomes a file name (the socket) and a topic level ($SYS), so it holds nothing special to either.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def broken(settings: Settings) -> Iterator[Finding]:
    """Each broken rule: the path of the key to blame and a sentence."""
    if not _NAME.fullmatch(settings.name):
        allowed = "1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit"
        yield ("name",), f'name = "{settings.name}" is refused: it takes {allowed}.'
    if settings.data == "":
        yield ("data",), "data is empty: name a directory, or leave the key out."
    if not settings.listener:
        yield ("listener",), "there is no listener: write at least one [[listener]] with a url."
    for number, rule in enumerate(settings.class_):
        yield from _broken_class(rule, ("class", number), settings)
    yield from events.broken(settings.event)
    yield from _broken_http(settings.http)
    yield from _broken_keeping(settings)
    seen: set[tuple[str, int]] = set()
    for number, listener in enumerate(settings.listener):
        yield from _broken_listener(listener, ("listener", number), seen)
    yield from peers.broken(settings)
    yield from published.broken(settings)
    yield from access_rules.broken(settings)


def _broken_class(rule: Class, path: KeyPath, settings: Settings) -> Iterator[Finding]:
    """A level by topic can never break the order of a topic; one by content can."""
    if problem := flaw(rule.filter):
        yield (*path, "filter"), problem
    if rule.filter.startswith(("$share/", "$where/")) or any(mark in rule.filter for mark in "?<>"):
        bare = rule.filter.partition("?")[0]
        if bare not in settings.priority.unordered:
            yield (
                (*path, "filter"),
                f'"{rule.filter}" looks at more than the topic: {_REORDERED}',
            )
    if rule.timeout is not None and seconds(rule.timeout) < seconds(settings.priority.period):
        yield (
            (*path, "timeout"),
            f"the timeout of class {rule.name} is shorter than priority.period: a slot per period cannot keep it.",
        )


def _broken_listener(listener: Listener, path: KeyPath, seen: set[tuple[str, int]]) -> Iterator[Finding]:
    try:
        url = urls.parse(listener.url)
    except urls.UrlError as problem:
        yield (*path, "url"), str(problem)
        return
    place = (url.path or url.host, url.port)
    if place in seen and (url.port or url.path):
        yield (*path, "url"), f"{url} is at an address that another listener already has."
    seen.add(place)
    if listener.origins and not url.is_websocket:
        yield (
            (*path, "origins"),
            f"{url} is not for browsers, so its origins would never be used: write ws:// or wss://.",
        )
    for origin in listener.origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            yield (*path, "origins"), f'"{origin}" is no origin: write https://host, https://host:port, or "*".'
    given = {"certificate": listener.certificate, "key": listener.key, "client_ca": listener.client_ca}
    if url.is_tls and url.is_peer:
        return
    if url.is_tls:
        for name in ("certificate", "key"):
            if not given[name]:
                yield path, f'{url} encrypts and so needs "certificate" and "key"; "{name}" is missing.'
        if listener.client_ca == "":
            yield (*path, "client_ca"), "client_ca is empty: name a file, or leave the key out."
        return
    for name, value in given.items():
        if value is not None:
            secure = "wss" if url.is_websocket else "tls"
            yield (
                (*path, name),
                f"{url} does not encrypt, so its {name} would never be used: write {secure}:// instead.",
            )


def _broken_http(http: Http) -> Iterator[Finding]:
    """Each _broken_http rule: the path of the key to blame and a sentence."""
    for origin in http.origins:
        if not _ORIGIN.fullmatch(origin):
            yield ("http", "origins"), f'"{origin}" is no origin: write https://host or https://host:port.'
    given = {"certificate": http.certificate, "key": http.key}
    if http.url is None:
        for name, value in given.items():
            if value is not None:
                yield ("http", name), f"http.{name} would never be used: there is no http.url."
        return
    try:
        url = urls.parse_http(http.url)
    except urls.UrlError as problem:
        yield ("http", "url"), str(problem)
        return
    for name, value in given.items():
        if url.is_tls and not value:
            yield ("http", "url"), f'{http.url} encrypts and so needs "certificate" and "key"; "{name}" is missing.'
        if not url.is_tls and value is not None:
            yield ("http", name), f"{http.url} does not encrypt, so its {name} would never be used: write https://."


def _broken_keeping(settings: Settings) -> Iterator[Finding]:
    """Each _broken_keeping rule: the path of the key to blame and a sentence."""
    log = settings.log
    for number, filter_ in enumerate(log.capture):
        if problem := flaw(filter_):
            yield ("log", "capture", number), problem
    is_logging = bool(log.capture) or log.events == "on"
    key = "capture" if log.capture else "events"
    if is_logging and settings.data is None:
        yield ("log", key), "there is no data directory to keep a log in: set data in this file."
    elif is_logging and settings.store.engine == "memory":
        yield ("log", key), 'store.engine = "memory" keeps nothing, so there can be no log: use "sqlite".'
    if bound(log.hard_bytes) < bound(log.retention_bytes):
        yield ("log", "hard_bytes"), "hard_bytes is below retention_bytes: readers could hold nothing at all."
    for number, reader in enumerate(log.readers):
        if not _READER.fullmatch(reader):
            yield (
                ("log", "readers", number),
                f'"{reader}" is no name for a reader: letters, digits, dots, dashes and underscores.',
            )
