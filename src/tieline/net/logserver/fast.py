"""The compiled loops, made ready beside the work: compiling takes seconds the first time, and loading half a second.

Until then, and where numba is not installed, records are decoded one by one, with the same outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import msgspec

from tieline.compiling import is_compiled
from tieline.conf.schema import Settings
from tieline.extras import remedy
from tieline.log.columns import LOG
from tieline.log.record import Occurrence
from tieline.net.log import log
from tieline.net.logserver.batches import Found
from tieline.net.logserver.question import OffsetSpan, Question
from tieline.net.logserver.selection import Selection
from tieline.net.store.reading import Group


class Fast:
    """Whether the loops are there."""

    def __init__(self) -> None:
        self.is_ready = False

    def begin(self) -> None:
        """Make them ready in a thread that nobody waits for."""
        if not is_compiled():
            log.info("without numba records are decoded one by one: %s", remedy("numba"))
        else:
            threading.Thread(target=self.prepare, name="tieline-log-compile", daemon=True).start()

    def prepare(self) -> None:
        """Make them ready now; a compiler that fails costs speed and nothing else."""
        try:
            _decode_a_sample()
        except Exception as problem:  # noqa: BLE001 - whatever the compiler says, the other way is there
            log.warning("the compiled loops cannot be used (%s): records are decoded one by one", problem)
        else:
            self.is_ready = True
            log.debug("records are decoded by compiled loops")


_ATTRIBUTES: Final = {"number": 1.5, "whole": 2, "text": "x", "flag": True}
_PROPERTIES: Final = b"\x26\x00\x01k\x00\x01v"
_RECORD: Final = (1, "meter", 1, 1, False, 1, False, 0, "normal", "a/b", b"{}", _PROPERTIES, bytes(8), _ATTRIBUTES)


class _All:
    """A reader who may see everything."""

    is_open = True

    def record(self, _topic: str) -> bool:
        return True

    def occurrence(self, _occurrence: Occurrence) -> bool:
        return True


def _decode_a_sample() -> None:
    """Decode a record with something in every field, so that all loops are compiled; raises if they cannot."""
    # imports numba
    from tieline.net.logserver.by_column import ByColumn

    blob = msgspec.msgpack.encode([_RECORD])
    ByColumn(LOG, Selection(Question(), Settings()), _All(), _unexpected)([Group(0, 1, 0.0, blob)], OffsetSpan(0, 1))


def _unexpected(groups: Sequence[Group], span: OffsetSpan) -> Found:  # noqa: ARG001 - as ways are called
    raise RuntimeError("they do not read what a broker writes")
