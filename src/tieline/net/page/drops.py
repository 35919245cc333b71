"""What was discarded, by name and level, with who lost it last and what would have helped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final  # Any: values of JSON

from tieline.core.account import NO_LEVEL, Account, Drop
from tieline.net.page.words import shortened
from tieline.sched.levels import LEVELS

#: Names and levels that are shown.
MOST_DROPS: Final = 12
#: What would have helped against each kind of drop.
HELPS: Final = {
    Drop.QUEUE_FULL: "a faster reader, or QoS 1",
    Drop.MEMORY_FULL: "faster readers, or a larger `limits.queue_bytes_total`",
    Drop.EXPIRED: "nothing: its publisher asked for it",
    Drop.TOO_LARGE: "a client that takes larger packets",
    Drop.OFFLINE: "QoS 1, which is kept for who is away",
    Drop.SESSION_ENDED: "a longer session expiry",
    Drop.DENIED: "a rule that allows it: `tieline why CLIENT publish TOPIC`",
    Drop.REFUSED: "a faster reader: its publisher was told",
    Drop.RETAINED_FULL: "a larger `limits.retained_bytes`",
    Drop.NO_MEMBER: "a member of the shared group that is there",
    Drop.CLASS_TOO_LARGE: "smaller messages, or a larger `max_packet` of the class",
    Drop.REJECTED: "nothing here: the client refused it",
    Drop.UNCONFIRMED: "a longer session expiry",
    Drop.UNKNOWN_LEVEL: "a priority from 0 to 3",
    Drop.REPEATED: "nothing: it has arrived before",
    Drop.MALFORMED_ONCE: "`$once` as PRODUCER/NUMBER",
    Drop.LINK_FULL: "a wider link, a plan, or QoS 1",
    Drop.FORGOTTEN: "nothing: that broker does not come back",
    Drop.OUT_OF_TURN: "sending again what was refused, first",
}


def drops(account: Account, names: Sequence[str]) -> list[dict[str, Any]]:
    """Every name under which something was discarded, the most first; ``names`` are those of the levels."""
    newest = {(drop.why, drop.level): drop.client for drop in account.last_drops}
    counted = [
        (count, why, level if level < LEVELS else NO_LEVEL)
        for level, by_name in enumerate(account.drops_by_level)
        for why, count in by_name.items()
    ]
    return [
        {
            "why": why.value,
            "class": "" if level == NO_LEVEL else names[level],
            "level": None if level == NO_LEVEL else level,
            "messages": count,
            "of": shortened(newest[why, level]) if newest.get((why, level)) else None,
            "helps": HELPS.get(why, ""),
        }
        for count, why, level in sorted(counted, key=lambda each: -each[0])[:MOST_DROPS]
    ]
