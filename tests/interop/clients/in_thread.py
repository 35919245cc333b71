"""An event loop in a thread, so that clients written for asyncio can be driven like the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.kits.patience import PATIENCE_S

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="clients", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(2 * PATIENCE_S)

    def close(self) -> None:
        """Stop the loop; whatever still runs on it is cancelled."""
        self.run(self._cancel_rest())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    @staticmethod
    async def _cancel_rest() -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
