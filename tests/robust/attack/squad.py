"""Those who attack together: processes of their own, which begin to count the time when all of them are ready."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import suppress
from ctypes import c_double
from math import inf
from threading import Thread
from time import monotonic, sleep
from typing import Final

from tests.robust.attack.bout import Bout
from tests.robust.attack.catalogue import KINDS
from tests.robust.attack.hostile import RETURN_S
from tests.robust.attack.site import Doors

#: Where very many kinds attack at once, each process has several of them, in threads.
PROCESSES: Final = 8
#: What attackers may take to leave what they have set up as they found it.
LEAVING_S: Final = 10.0


def _attack(name: str, doors: Doors, connections: int, bout: Bout) -> None:
    """One kind; when the broker throws it out, it comes back from the beginning."""
    while not bout.is_over():
        with suppress(OSError, AssertionError):
            KINDS[name](doors, connections, bout)
        sleep(RETURN_S)


def _run(names: list[str], doors: Doors, connections: int, bouts: list[Bout]) -> None:
    """A process; the honest clients and the broker come first on a machine that all share."""
    os.nice(10)
    threads = [
        Thread(target=_attack, args=(name, doors, connections, bout), daemon=True)
        for name, bout in zip(names, bouts, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Squad:
    """Attackers of some kinds, with so many connections each."""

    def __init__(self, names: tuple[str, ...], doors: Doors, connections: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._until: c_double = context.RawValue(c_double, inf)
        self._set_up: dict[str, c_double] = {name: context.RawValue(c_double, 0.0) for name in names}
        self._processes = []
        for start in range(min(PROCESSES, len(names))):
            own = list(names[start::PROCESSES])
            bouts = [Bout(self._until, self._set_up[name]) for name in own]
            process = context.Process(target=_run, args=(own, doors, connections, bouts), daemon=True)
            process.start()
            self._processes.append(process)

    @property
    def unready(self) -> list[str]:
        """Kinds whose set-up is not complete."""
        return [name for name, when in self._set_up.items() if not when.value]

    def end_in(self, seconds: float) -> None:
        """The phase is over after so long."""
        self._until.value = monotonic() + seconds

    def leave(self) -> None:
        """End it, and all processes."""
        self.end_in(0)
        deadline = monotonic() + LEAVING_S
        for process in self._processes:
            process.join(max(0.0, deadline - monotonic()))
            process.kill()
            process.join()
