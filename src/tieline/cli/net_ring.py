"""What ``tieline net`` shows of a broker on a ring: the few others that it knows, and what passes its links."""

from __future__ import annotations

from typing import Any, Final  # Any: values of JSON

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tieline.cli.terminal import size

#: What is told in the last lines, and in which words.
_TOTALS: Final = {
    "useless": "came in vain",
    "waiting/messages": "wait for links",
    "unacknowledged/messages": "not acknowledged by the next broker",
    "owed/batches": "batches owed or carried",
}
#: Digits of a place that tell brokers apart on a screen.
_DIGITS: Final = 6


def ring(answer: dict[str, Any]) -> RenderableType:
    """One look: the verdict, who stands around this broker, and whom it goes by."""
    parts: list[RenderableType] = [Text(answer["verdict"], style="bold"), Text(), _others(answer), Text()]
    totals, name = answer["totals"], answer["name"]
    told = ", ".join(f"{totals[key]:,} {words}" for key, words in _TOTALS.items())
    parts.append(Text(f"At {name}, {answer['address']}, place {answer['place'][:_DIGITS]}: {told}."))
    links = f"{totals['links/up']:,} links up, {size(totals['bytes/sent'])} sent, {size(totals['bytes/received'])} came"
    parts.append(Text(f"{links}; {totals['watchers']:,} brokers are told what is wanted here."))
    if answer["counts"]:
        counted = ", ".join(f"{what.replace('_', ' ')} {count:,}" for what, count in sorted(answer["counts"].items()))
        parts.append(Text(f"Counted at {name}: {counted}.", style="dim"))
    return Group(*parts)


def _others(answer: dict[str, Any]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("broker", "place", "stands", "link", "its arc wants"):
        table.add_column(heading, overflow="ellipsis", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    rows: dict[str, tuple[dict[str, Any], list[str], str]] = {}
    if answer["before"] is not None:
        rows[answer["before"]["place"]] = (answer["before"], ["before"], "")
    for number, peer in enumerate(answer["behind"], 1):
        rows.setdefault(peer["place"], (peer, [], ""))[1].append(f"behind {number}")
    for finger in answer["fingers"]:
        peer, stands, _ = rows.get(finger["place"], (finger, [], ""))
        rows[finger["place"]] = (peer, [*stands, "finger"], _wanted(finger))
    for place, (peer, stands, wanted) in sorted(rows.items(), key=lambda row: _way(answer["place"], row[0])):
        link = Text("up" if peer["is_up"] else "as needed", style="" if peer["is_up"] else "dim")
        table.add_row(peer["name"], place[:_DIGITS], ", ".join(stands), link, wanted, f"{peer['waiting']:,}")
    return table


def _wanted(finger: dict[str, Any]) -> str:
    if not finger["is_certain"]:
        return "not known yet"
    brokers = finger["brokers"]
    if brokers is None:
        return f"a sum of {size(finger['told_bytes'])}"
    return "nothing" if not brokers else f"{brokers} by name, {size(finger['told_bytes'])}"


def _way(start: str, end: str) -> int:
    return (int(end, 16) - int(start, 16)) % (1 << 4 * len(start))
