"""Topic names and filters: well-formed or not, shared or not, and whether a filter matches a name [4.7, 4.8.2]."""

from __future__ import annotations

from typing import Final

from tieline.wire.errors import Violation
from tieline.wire.reason import Reason

SHARE: Final = "$share/"


def check_name(topic: str, max_levels: int) -> None:
    """Refuse what cannot be the topic of a message, and more levels than the server keeps."""
    if not topic:
        raise Violation("a topic name is empty", "MQTT-4.7.3-1")
    if "+" in topic or "#" in topic:
        raise Violation("a topic name contains a wildcard", "MQTT-4.7.0-1")
    if topic.count("/") >= max_levels:
        raise Violation(f"a topic name has more than {max_levels} levels", "4.7.3", Reason.TOPIC_NAME_INVALID)


def check_filter(filter: str, max_levels: int) -> None:
    """Refuse a filter that is not well-formed or has more levels than the server keeps.

    The levels of a shared filter are counted behind its ``$share/name/``.
    """
    _, filter = split_share(filter)
    if not filter:
        raise _refused("a topic filter is empty", "MQTT-4.7.3-1")
    if filter.count("/") >= max_levels:
        raise _refused(f"a topic filter has more than {max_levels} levels", "4.7.3")
    _check_wildcards(filter)


def _check_wildcards(filter: str) -> None:
    if "#" in filter:
        first = filter.index("#")
        if first != len(filter) - 1 or (first and filter[first - 1] != "/"):
            raise _refused("# is not the whole last level of a topic filter", "MQTT-4.7.1-1")
    if "+" in filter and any("+" in level and level != "+" for level in filter.split("/")):
        raise _refused("+ does not stand for a whole level of a topic filter", "MQTT-4.7.1-2")


def is_plain_filter(text: str) -> bool:
    """Whether it is a topic filter of MQTT 3.1.1, where ``$share/`` begins a filter like any other."""
    try:
        _check_wildcards(text)
    except Violation:
        return False
    return text != ""


def split_share(filter: str) -> tuple[str | None, str]:
    """The share name and the filter behind it, or ``None`` and the filter itself when it is not shared."""
    if not filter.startswith(SHARE):
        return None, filter
    name, slash, rest = filter[len(SHARE) :].partition("/")
    if not name:
        raise _refused("a shared subscription has no share name", "MQTT-4.8.2-1")
    if "+" in name or "#" in name:
        raise _refused("a share name contains a wildcard", "MQTT-4.8.2-2")
    if not slash or not rest:
        raise _refused("a shared subscription has no topic filter", "MQTT-4.8.2-2")
    return name, rest


def matches(filter: str, topic: str) -> bool:
    """Whether a well-formed filter (without ``$share/name/``) wants messages of this topic."""
    if topic[:1] == "$" and filter[:1] in ("+", "#"):  # [MQTT-4.7.2-1]
        return False
    wanted = filter.split("/")
    levels = topic.split("/")
    if wanted[-1] == "#":
        # "a/#" wants "a" too: # stands for any number of levels, none included [4.7.1.2].
        wanted.pop()
        if len(levels) < len(wanted):
            return False
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(want in ("+", level) for want, level in zip(wanted, levels, strict=True))


def _refused(text: str, clause: str) -> Violation:
    return Violation(text, clause, Reason.TOPIC_FILTER_INVALID)
