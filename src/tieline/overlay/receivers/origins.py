"""Publishers of other brokers, one object for each as long as it is remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.core.message import Origin

#: Publishers that are remembered, and characters of their client ids.
_ORIGINS: Final = 10_000
_CHARACTERS: Final = 4_000_000


class Origins:
    """A memory of them, which is emptied when it is full."""

    def __init__(self, make: Callable[[int, str], Origin]) -> None:
        """``make`` makes one, of a broker and the client id that this one has said."""
        self._make = make
        self._known: dict[tuple[int, str], Origin] = {}
        self._characters = 0

    def of(self, broker: int, client: str) -> Origin:
        """A publisher by its broker and what that calls it."""
        origin = self._known.get((broker, client))
        if origin is None:
            self._characters += len(client)
            if len(self._known) >= _ORIGINS or self._characters > _CHARACTERS:
                self._known.clear()
                self._characters = len(client)
            origin = self._known[broker, client] = self._make(broker, client)
        return origin
