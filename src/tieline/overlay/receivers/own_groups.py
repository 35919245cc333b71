"""How many groups clients of this broker are members of: others look at so many of one broker, and no more.

A group beyond that would get only what this broker accepts, and nobody would be told.  So whoever asks for it is
refused; and one session cannot take the place of all others.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tieline.overlay.interests.entries import Entry
from tieline.overlay.receivers.remote_groups import MOST

#: Groups of one session.
MOST_OF_SESSION: Final = 256


class OwnGroups:
    """The groups of this broker, by what their members ask for."""

    def __init__(self) -> None:
        self._members: Counter[Entry] = Counter()

    def note(self, entry: Entry, *, is_new: bool) -> None:
        """A client is a member of a group from now on, or no longer."""
        self._members[entry] += 1 if is_new else -1
        if not self._members[entry]:
            del self._members[entry]

    def refusal(self, entry: Entry, of_session: int) -> str | None:
        """Why a client with so many groups cannot be a member of one more; None if it can."""
        if of_session >= MOST_OF_SESSION:
            return f"a session may be a member of {MOST_OF_SESSION} groups, for other brokers have to know of them"
        if len(self._members) >= MOST and entry not in self._members:
            return f"other brokers look at {MOST} groups of this one"
        return None
