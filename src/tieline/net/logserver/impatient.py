"""HTTP connections that have to say what they want within a time: otherwise whoever opens many keeps others out."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

#: From the opening of a connection, or from the first byte of a later request, to the end of the request's head.
HEAD_S: Final = 15.0


class Impatient(H11Protocol):
    """Breaks a connection whose request does not come to an end; uvicorn itself waits for ever."""

    _hurry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A connection was opened."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Something came; is it a request by now?"""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _watch(self) -> None:
        cycle: object = self.cycle  # None before the first request, though uvicorn's annotation denies it
        if isinstance(cycle, RequestResponseCycle) and not cycle.response_complete:
            self._calm()
        elif self._hurry is None:
            self._hurry = self.loop.call_later(HEAD_S, self.transport.abort)

    def _calm(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None
