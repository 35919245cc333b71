"""Numbers in sentences: durations, shares and counts as people say them, and names that strangers have chosen."""

from __future__ import annotations

from shlex import quote
from typing import Final

#: Characters of a name that somebody else has chosen.
MOST: Final = 256
_SMALL: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def shortened(name: str) -> str:
    """As much of a name as is shown; what cannot be printed is shown as a box."""
    text = name if len(name) <= MOST else f"{name[: MOST - 1]}…"
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def argument(name: str) -> str | None:
    """A name as a shell takes it; None if nobody should paste it."""
    if not name or len(name) > MOST or not name.isprintable():
        return None
    return f"-- {quote(name)}" if name.startswith("-") else quote(name)


def several(count: int, what: str, plural: str = "") -> str:
    """``1 link``, ``1,204 links``."""
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def beginning(count: int, what: str, plural: str = "") -> str:
    """The same where a sentence begins: ``Three links``, ``412 links``."""
    number = _SMALL[count] if count < len(_SMALL) else f"{count:,}"
    return f"{number} {what if count == 1 else plural or what + 's'}"


def are(count: int) -> str:
    """``is`` of one, ``are`` of all others."""
    return "is" if count == 1 else "are"


def duration(seconds: float) -> str:
    """A span of time in its largest units: 4.2 ms, 38 ms, 2.2 s, 2 min 40 s, 3 d 4 h."""
    if seconds < 1:
        number = seconds * 1e3
        return f"{number:.1f} ms" if number < 10 else f"{number:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, hours, days = int(seconds) // 60, int(seconds) // 3600, int(seconds) // 86_400
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60} s"
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{days} d {hours % 24} h"


def share(part: float) -> str:
    """A part of a whole: 97 %, and 0.4 % where a digit more matters."""
    percent = part * 100
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def size(octets: float) -> str:
    """Bytes in decimal units: 640 B, 3.2 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if octets < 1000 or unit == "GB":
            return f"{octets:.0f} {unit}" if unit == "B" or octets >= 100 else f"{octets:.1f} {unit}"
        octets /= 1000
    raise AssertionError("the last unit takes everything")
