"""The compiled loops, made ready beside the work: compiling takes seconds the first time, and loading half a second.

Until then, and where numba is not installed, records are decoded one by one, with the same outcome.
"""

from __future__ import annotations

import threading

from tieline.compiling import is_compiled
from tieline.net.log import log


class Fast:
    """Whether the loops are there."""

    def __init__(self) -> None:
        self.is_ready = False

    def begin(self) -> None:
        """Make them ready in a thread that nobody waits for."""
        if not is_compiled():
            log.info("without numba records are decoded one by one: pip install 'tieline[numba]'")
        else:
            threading.Thread(target=self.prepare, name="tieline-log-compile", daemon=True).start()

    def prepare(self) -> None:
        """Make them ready now; a compiler that fails costs speed and nothing else."""
        try:
            from tieline.net.logserver.sample import run

            run()
        except Exception as problem:  # noqa: BLE001 - whatever the compiler says, the other way is there
            log.warning("the compiled loops cannot be used (%s): records are decoded one by one", problem)
        else:
            self.is_ready = True
            log.debug("records are decoded by compiled loops")
