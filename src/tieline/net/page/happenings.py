"""What has happened lately that explains what charts show: links that came and went, plans, and the start."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final  # Any: values of JSON

from tieline.net.page.words import shortened

#: How many are remembered, and for how long they are told.
MOST: Final = 32
TOLD_S: Final = 3_600.0


class Happenings:
    """Compares each second with the one before; what has changed is remembered with its time."""

    def __init__(self) -> None:
        self._last: deque[tuple[float, str]] = deque(maxlen=MOST)
        #: Which links are up, and the plan in force, at the second before; None before the first.
        self._links: dict[str, bool] | None = None
        self._epoch = 0

    def notice(self, links: Mapping[str, bool], epoch: int, time: float) -> None:
        """See how it is now: which links are up, by their peers, and by which plan messages go."""
        before, self._links = self._links, dict(links)
        was, self._epoch = self._epoch, epoch
        if before is None:
            self._last.append((time, "started"))
            return
        for peer, is_up in links.items():
            if before.get(peer, False) != is_up:
                self._last.append((time, f"link to {shortened(peer)} {'up' if is_up else 'down'}"))
        if epoch != was:
            self._last.append((time, f"plan {epoch} in force" if epoch else "no plan any more"))

    def last(self, time: float) -> list[dict[str, Any]]:
        """What happened within the last hour, the oldest first."""
        return [{"t": when, "text": text} for when, text in self._last if time - when < TOLD_S]
