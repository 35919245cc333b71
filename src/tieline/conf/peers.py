"""Rules of the settings about other brokers: where they are, and by what they are known."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tieline.conf import urls
from tieline.conf.describe import Finding, KeyPath
from tieline.conf.filters import flaw
from tieline.conf.overlay import Overlay, Peer, Ring
from tieline.conf.schema import Listener, Settings

#: Hosts that stand for all addresses of a machine.
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - it is what nobody can dial


def with_identity(listener: Listener, overlay: Overlay) -> Listener:
    """A listener as it is served: where other brokers connect with TLS, it has the certificates of the overlay."""
    if not listener.url.startswith("peer+tls://"):
        return listener
    return msgspec.structs.replace(listener, certificate=overlay.certificate, key=overlay.key, client_ca=overlay.ca)


def is_joined(settings: Settings) -> bool:
    """Whether a broker has anything to do with others."""
    return bool(settings.peer) or any(urls.parse(each.url).is_peer for each in settings.listener)


def broken(settings: Settings) -> Iterator[Finding]:
    """Each broken rule: the path of the key to blame and a sentence."""
    addresses: list[tuple[KeyPath, str]] = [
        (("listener", number, "url"), each.url)
        for number, each in enumerate(settings.listener)
        if each.url.startswith("peer")
    ]
    for number, peer in enumerate(settings.peer):
        yield from _broken_peer(peer, ("peer", number), settings)
        if peer.url is not None and peer.url.startswith("peer"):
            addresses.append((("peer", number, "url"), peer.url))
    for path, text in addresses:
        try:
            url = urls.parse(text)
        except urls.UrlError as problem:
            # listeners are looked at elsewhere too
            if path[0] == "peer":
                yield path, str(problem)
            continue
        yield from _broken_address(url, path, settings.overlay)
    yield from _broken_identity(settings)
    yield from _broken_gateway(settings)
    yield from _broken_ring(settings)


def _broken_ring(settings: Settings) -> Iterator[Finding]:
    """A broker is on a ring with what that takes, and with nothing that only a group has."""
    overlay, ring = settings.overlay, settings.overlay.ring
    if overlay.mode != "ring":
        if ring != Ring():
            yield ("overlay", "ring"), '[overlay.ring] is for brokers with overlay.mode = "ring".'
        return
    listening = [urls.parse(each.url) for each in settings.listener if each.url.startswith("peer")]
    if not listening:
        yield ("overlay", "mode"), "other brokers of a ring dial this one: it needs a listener with peer://host:port."
    elif ring.address is None and not listening[0].is_unix and listening[0].host in _EVERYWHERE:
        text = f"{listening[0]} is no address that other brokers could dial: say overlay.ring.address."
        yield ("overlay", "ring"), text
    if ring.address is not None:
        yield from _broken_ring_address(ring.address, listening)
    if overlay.region is not None:
        yield ("overlay", "region"), "a gateway is joined with the brokers of a group, and cannot be on a ring."
    if overlay.strategy != "path":
        yield ("overlay", "strategy"), "a ring has no strategy: overlay.ring.dispatch says how messages get around it."
    for number, peer in enumerate(settings.peer):
        for name in ("may", "key_file"):
            if getattr(peer, name) is not None:
                text = "brokers of a ring are met by their addresses, and all have the same rights and key."
                yield ("peer", number, name), f"{text} Leave the key out."


def _broken_ring_address(address: str, listening: list[urls.ListenerUrl]) -> Iterator[Finding]:
    path = ("overlay", "ring", "address")
    try:
        url = urls.parse(address)
    except urls.UrlError as problem:
        yield path, str(problem)
        return
    if not url.is_peer or not (url.port or url.is_unix):
        yield path, f'"{address}" is no address of a broker: write peer://host:port.'
    elif url.scheme not in {each.scheme for each in listening}:
        yield path, f"{url} is dialled as {url.scheme}, and no listener of this broker is one of those."


def _broken_gateway(settings: Settings) -> Iterator[Finding]:
    """A broker is a gateway with everything that this takes, or with nothing of it."""
    region = settings.overlay.region
    outside: list[KeyPath] = [
        (("listener", number, "gateway")) for number, each in enumerate(settings.listener) if each.gateway
    ]
    outside += [("peer", number, "gateway") for number, each in enumerate(settings.peer) if each.gateway]
    if region is None:
        for path in outside:
            yield path, "only a gateway is joined with other regions: name this one with overlay.region."
        return
    here = ("overlay", "region")
    for number, each in enumerate(settings.listener):
        if not each.url.startswith("peer"):
            yield (
                ("listener", number, "url"),
                f"{each.url} is for clients, and a gateway has none: let them connect to another broker of {region}.",
            )
        elif each.gateway and each.url.startswith("peer+unix"):
            yield ("listener", number, "gateway"), "a socket in the file system is for the brokers of one region."
    if not outside:
        yield here, f"a gateway of region {region} needs a listener or a peer with gateway = true."
    if len(outside) == len(settings.peer) + len(settings.listener):
        yield here, f"a gateway needs a listener or a peer for the brokers of region {region}, without gateway = true."
    if settings.data is None:
        yield here, "a gateway keeps what crosses, and there is no data directory to keep it in: set data in this file."
    for number, peer in enumerate(settings.peer):
        if peer.gateway and peer.may is not None:
            yield (
                ("peer", number, "may"),
                "what may cross to another region cannot be said by topic: leave the key out.",
            )
        if peer.gateway and peer.name is not None and "@" not in peer.name:
            yield ("peer", number, "name"), f"a gateway of another region is known as {peer.name}@ and its region."


def _broken_peer(peer: Peer, path: KeyPath, settings: Settings) -> Iterator[Finding]:
    if peer.url is None and peer.name is None:
        yield path, "a peer without url and name can be nobody: give it one of them."
    elif peer.url is not None and not peer.url.startswith("peer"):
        yield (*path, "url"), f'"{peer.url}" is no address of a broker: write peer://host:port.'
    if peer.name == settings.name:
        yield (*path, "name"), f"the peer {peer.name} has the name of this broker."
    yield from _broken_rights(peer, path, settings.overlay)
    named = [each.name for each in settings.peer if each.name is not None]
    if peer.name is not None and named.count(peer.name) > 1:
        yield (*path, "name"), f"two peers are called {peer.name}."


def _broken_rights(peer: Peer, path: KeyPath, overlay: Overlay) -> Iterator[Finding]:
    if peer.key_file is not None and peer.name is None:
        yield (*path, "key_file"), "a peer with a key of its own needs a name, by which it is known when it comes."
    if peer.may is None:
        return
    if peer.name is None:
        yield (*path, "may"), "a peer needs a name before it can be said what it may."
    elif overlay.key_file is not None and peer.key_file is None:
        yield (
            (*path, "may"),
            f"with overlay.key_file the peer {peer.name} could take another name: give it a key_file of its own.",
        )
    for number, word in enumerate(peer.may):
        what, _, filter_ = word.partition(" ")
        problem = flaw(filter_)
        if problem is not None:
            yield (*path, "may", number), f'"{what}": {problem}'


def _broken_address(url: urls.ListenerUrl, path: KeyPath, overlay: Overlay) -> Iterator[Finding]:
    if path[0] == "peer" and not url.port and not url.is_unix:
        yield path, f"{url} has no port that could be dialled."
    if url.is_tls:
        for name in ("certificate", "key", "ca"):
            if not getattr(overlay, name):
                yield path, f"{url} needs overlay.certificate, overlay.key and overlay.ca; overlay.{name} is missing."
    elif overlay.key_file is None and not url.is_loopback():
        yield (
            path,
            f"{url} is not on this machine alone: write peer+tls://, or give all brokers the same overlay.key_file.",
        )


def _broken_identity(settings: Settings) -> Iterator[Finding]:
    for number, listener in enumerate(settings.listener):
        if listener.url.startswith("peer+tls://"):
            for name in ("certificate", "key", "client_ca"):
                if getattr(listener, name) is not None:
                    yield (
                        ("listener", number, name),
                        f"{listener.url} shows the certificate of [overlay], and its own {name} would never be used.",
                    )
