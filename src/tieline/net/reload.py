"""A reload: the file is read again, what differs is listed, and what can change under connected clients does.

Everything is read and tried before anything is changed: settings, certificates, users.  What cannot be used, or cannot
be changed while the broker runs, leaves it as it is, unless the rest was asked for alone (``partial``).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final  # Any: settings of every kind

import msgspec
from msgspec import Struct

from tieline.conf.error import ConfError
from tieline.conf.peers import is_joined, with_identity
from tieline.conf.schema import Listener, Rule, Settings
from tieline.net.auth.door import read_users
from tieline.net.auth.passwords import PasswordFileError
from tieline.net.listener import ListenError, context_of
from tieline.net.log import log
from tieline.net.peer_settings import differences, read_secrets
from tieline.net.preflight import warn
from tieline.net.services import Renewal

if TYPE_CHECKING:
    from tieline.net.services import Running

#: What takes effect at once, table by table; None stands for the whole table.  Everything else needs a restart.
LIVE: Final[dict[str, frozenset[str] | None]] = {
    "auth": None,
    "groups": None,
    "rule": None,
    "limit": None,
    "claim": None,
    "class": None,
    "limits": frozenset(
        {
            "packet_bytes",
            "connections",
            "sessions",
            "connect_timeout_s",
            "topic_levels",
            "subscriptions",
            "subscriptions_total",
            "queue_messages",
            "queue_bytes",
            "queue_bytes_total",
            "spill_messages",
            "spill_bytes",
            "spill_bytes_total",
            "user_spill_bytes",
            "inflight",
            "producers",
            "unknown_bytes",
            "memory_bytes",
            "user_bytes",
            "user_sessions",
            "user_subscriptions",
            "user_retained_messages",
            "user_retained_bytes",
        }
    ),
    "overlay": frozenset({"strategy", "covering", "publishes", "reference", "key_file", "certificate", "key", "ca"}),
    "mqtt": frozenset({"absent", "pause_max_s", "session_expiry_max_s", "keep_alive_max_s", "server_reference"}),
}
#: Of a listener everything but where it is.
_FIXED_OF_LISTENER: Final = frozenset({"url", "gateway"})


class ReloadError(Exception):
    """A reload that changed nothing; the text is a whole sentence."""


class Change(Struct, frozen=True):
    """One setting that differs."""

    key: str
    old: str
    new: str
    is_live: bool

    def __str__(self) -> str:
        return f"{self.key}: {self.old} -> {self.new}"


def compare(old: Settings, new: Settings) -> list[Change]:
    """Every setting that differs, by the name under which it is written."""
    changes: list[Change] = []
    for field in msgspec.structs.fields(Settings):
        name, before, after = field.encode_name, getattr(old, field.name), getattr(new, field.name)
        if before == after:
            continue
        live = LIVE.get(name, frozenset())
        if isinstance(before, msgspec.Struct):
            changes += _keys(name, before, after, live)
        elif name == "listener" and [_fixed(each) for each in before] == [_fixed(each) for each in after]:
            for number, (one, other) in enumerate(zip(before, after, strict=True), 1):
                changes += _keys(f"listener[{number}]", one, other, _LISTENER_KEYS)
        elif name == "peer" and is_joined(old):
            changes += [
                Change(key, _shown(one), _shown(other), is_live=True) for key, one, other in differences(before, after)
            ]
        elif name == "rule" and [*map(_bare, before)] == [*map(_bare, after)]:
            changes.append(Change(name, _shown(before), "the same, on other lines", is_live=True))
        else:
            changes.append(Change(name, _shown(before), _shown(after), live is None))
    return changes


def _bare(rule: Rule) -> tuple[Any, ...]:
    """A rule without where it is written."""
    return tuple(getattr(rule, field) for field in Rule.__struct_fields__)


_LISTENER_KEYS: Final = frozenset(Listener.__struct_fields__) - _FIXED_OF_LISTENER


def _fixed(listener: Listener) -> tuple[Any, ...]:
    """What a listener is known by while it runs."""
    return listener.url, listener.gateway


def merge(old: Settings, new: Settings) -> Settings:
    """The old settings with those of the new that take effect at once."""
    merged: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        live = LIVE.get(field.encode_name, frozenset())
        before, after = getattr(old, field.name), getattr(new, field.name)
        is_same = field.name == "listener" and [_fixed(each) for each in before] == [_fixed(each) for each in after]
        # a broker that is alone does not become one of several while it runs
        if live is None or is_same or (field.name == "peer" and is_joined(old)):
            merged[field.name] = after
        elif live:
            merged[field.name] = msgspec.structs.replace(before, **{key: getattr(after, key) for key in live})
    return msgspec.structs.replace(old, **merged)


async def reload(server: Running, *, partial: bool = False, dry: bool = False) -> dict[str, Any]:
    """Read the settings again and act by them; what was found and done, or ReloadError and nothing was done."""
    # one at a time, each with the files as they are when its turn comes: so the newest files are those that hold
    async with server.reloading:
        return await _reload(server, partial=partial, dry=dry)


async def _reload(server: Running, *, partial: bool, dry: bool) -> dict[str, Any]:
    if server.reread is None:
        raise ReloadError("this broker was not started from a file, so there is nothing to read again.")
    aside = asyncio.get_running_loop().run_in_executor
    try:
        new = await aside(None, server.reread)
        changes = compare(server.settings, new)
        refused = [change for change in changes if not change.is_live]
        wanted = merge(server.settings, new)
        # files may have changed although their names have not
        users = await aside(None, read_users, wanted)
        known = await aside(None, read_secrets, wanted) if is_joined(server.settings) else None
        contexts = [await aside(None, context_of, with_identity(conf, wanted.overlay)) for conf in wanted.listener]
    except (ConfError, PasswordFileError, ListenError, ReloadError) as error:
        raise ReloadError(f"nothing was changed: {error}") from None
    is_applied = not dry and (partial or not refused)
    gone = 0
    if is_applied:
        gone = server.renew(Renewal(wanted, contexts, users, known))
        warn(wanted)
    return {
        "changes": [{"key": each.key, "old": each.old, "new": each.new, "live": each.is_live} for each in changes],
        "refused": [change.key for change in refused],
        "read_again": _files(wanted),
        "applied": is_applied,
        "disconnected": gone,
    }


def on_hangup(server: Running) -> None:
    """SIGHUP: reload, and let the log tell of it."""
    task = asyncio.get_running_loop().create_task(_reload_and_tell(server))
    # asyncio itself keeps only a weak reference
    _RUNNING.add(task)
    task.add_done_callback(_RUNNING.discard)


_RUNNING: set[asyncio.Task[None]] = set()


async def _reload_and_tell(server: Running) -> None:
    try:
        done = await reload(server)
    except ReloadError as error:
        log.error("reload: %s", error)
        return
    for change in done["changes"]:
        state = "" if change["live"] else " (needs a restart)"
        log.info("reload: %s: %s -> %s%s", change["key"], change["old"], change["new"], state)
    if done["applied"]:
        log.info("reload: done; read again: %s", ", ".join(done["read_again"]) or "no other file")
    else:
        log.error("reload: nothing was changed; %s would need a restart", ", ".join(done["refused"]))


def _keys(table: str, before: Any, after: Any, live: frozenset[str] | None) -> list[Change]:
    return [
        Change(f"{table}.{key}", _shown(one), _shown(other), live is None or key in live)
        for key in before.__struct_fields__
        if (one := getattr(before, key)) != (other := getattr(after, key))
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, tuple | dict) and len(str(value)) > 60:
        return f"{len(value)} entries"
    if isinstance(value, tuple) and any(isinstance(each, msgspec.Struct) for each in value):
        return f"{len(value)} entries"
    return str(value)


def _files(settings: Settings) -> list[str]:
    """The files behind the settings that were read again."""
    overlay = settings.overlay
    names = [settings.auth.password_file, overlay.key_file, overlay.certificate, overlay.key, overlay.ca]
    names += [peer.key_file for peer in settings.peer]
    for listener in settings.listener:
        names += [listener.certificate, listener.key, listener.client_ca]
    return [*dict.fromkeys(name for name in names if name is not None)]
