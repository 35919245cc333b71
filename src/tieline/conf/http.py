"""The address of the HTTP endpoint: ``http://host:port``, and what has to go with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieline.conf import urls
from tieline.conf.schema import Http

#: How the same address is called as an MQTT listener.
_SCHEMES: Final = {"http": "tcp", "https": "tls"}


def parse_http(text: str) -> urls.ListenerUrl:
    """Take an address apart, or raise UrlError with a sentence that says how to write it."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise urls.UrlError(f'"{text}" is no address for HTTP: write http://127.0.0.1:9883, or https://.')
    host = rest.removesuffix("/")
    if not host.rpartition("]")[2].rpartition(":")[2].isdigit() or ":" not in host.rpartition("]")[2]:
        raise urls.UrlError(f'"{text}" has no port: write {scheme}://{host or "127.0.0.1"}:9883.')
    return urls.parse(f"{_SCHEMES[scheme]}://{rest}")


def broken(http: Http) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each broken rule: the path of the key to blame and a sentence."""
    given = {"certificate": http.certificate, "key": http.key}
    if http.url is None:
        for name, value in given.items():
            if value is not None:
                yield ("http", name), f"http.{name} would never be used: there is no http.url."
        return
    try:
        url = parse_http(http.url)
    except urls.UrlError as problem:
        yield ("http", "url"), str(problem)
        return
    for name, value in given.items():
        if url.is_tls and not value:
            yield ("http", "url"), f'{http.url} encrypts and so needs "certificate" and "key"; "{name}" is missing.'
        if not url.is_tls and value is not None:
            yield ("http", name), f"{http.url} does not encrypt, so its {name} would never be used: write https://."
