"""What settings say of other brokers: secrets, read before anything is done, and what a reload changes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple  # Any: settings of every kind

from tieline.net.address import client_context
from tieline.net.listener import ListenError
from tieline.net.trust import Trust, read_trust

if TYPE_CHECKING:
    from tieline.conf.overlay import Peer
    from tieline.conf.schema import Settings
    from tieline.net.trust import Context


class Secrets(NamedTuple):
    """What is in the files that the settings of other brokers name."""

    #: Those of all brokers; none where peers need not prove anything.
    keys: tuple[bytes, ...]
    #: By name, those that only one peer and this broker have.
    own_keys: Mapping[str, tuple[bytes, ...]]
    #: For addresses that are dialled with TLS; None where there are none.
    context: Context | None
    #: Whose certificates are believed; None where brokers have none.
    trust: Trust | None


def read_secrets(settings: Settings) -> Secrets:
    """Everything that is needed of files; raises ListenError where one of them cannot be used."""
    overlay = settings.overlay
    return Secrets(
        () if overlay.key_file is None else read_keys(overlay.key_file),
        {peer.name: read_keys(peer.key_file) for peer in settings.peer if peer.name and peer.key_file},
        read_client_context(settings),
        _read_trust(settings),
    )


def read_keys(path: str) -> tuple[bytes, ...]:
    """The secrets that brokers share, one on each line; raises ListenError."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise ListenError(f"{path}: the key cannot be read: {error.strerror or error}.") from error
    keys = tuple(key for line in lines if (key := line.strip()))
    if not keys or min(map(len, keys)) < 16:
        raise ListenError(f"{path}: a key has at least 16 bytes, on one line.")
    return keys


def _read_trust(settings: Settings) -> Trust | None:
    path = settings.overlay.ca
    try:
        return None if path is None else read_trust(path)
    except OSError as error:
        raise ListenError(f"overlay.ca: {path} cannot be used: {error}") from error


def read_client_context(settings: Settings) -> Context | None:
    """What dialling with TLS needs; None where no address asks for it.  Raises ListenError."""
    overlay = settings.overlay
    dialled = [peer.url for peer in settings.peer if peer.url is not None]
    if overlay.mode == "ring":
        # brokers of a ring dial whom they hear of, and those are reached as they are reached themselves
        dialled += [each.url for each in settings.listener]
    if not any(url.startswith("peer+tls://") for url in dialled):
        return None
    if overlay.certificate is None or overlay.key is None or overlay.ca is None:
        raise ListenError("peer+tls:// needs overlay.certificate, overlay.key and overlay.ca.")
    try:
        return client_context(overlay.certificate, overlay.key, overlay.ca)
    except (OSError, ValueError) as error:
        raise ListenError(f"[overlay]: the certificate, key or ca cannot be used: {error}") from error


def differences(before: Sequence[Peer], after: Sequence[Peer]) -> Iterator[tuple[str, Any, Any]]:
    """What a reload changes of peers: the name of the setting, the old and the new, None where there is none."""
    olds, news = _by_identity(before), _by_identity(after)
    for who in [*olds, *(who for who in news if who not in olds)]:
        old, new = olds.get(who), news.get(who)
        if old is None and new is not None:
            yield f"peer[{who}]", None, f"dialled at {new.url}" if new.url else "known by its name"
        elif new is None and old is not None:
            yield f"peer[{who}]", f"dialled at {old.url}" if old.url else "known by its name", None
        elif old is not None and new is not None:
            for key in old.__struct_fields__:
                one, other = getattr(old, key), getattr(new, key)
                if one != other:
                    yield f"peer[{who}].{key}", one, other


def _by_identity(peers: Sequence[Peer]) -> dict[str, Peer]:
    return {peer.name or peer.url or "": peer for peer in peers}
