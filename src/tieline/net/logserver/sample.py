"""A record with something in every field, decoded once so that all loops are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from tieline.conf.schema import Settings
from tieline.log.columns import LOG
from tieline.log.record import Occurrence
from tieline.net.logserver.batches import Found
from tieline.net.logserver.by_column import ByColumn
from tieline.net.logserver.question import Question
from tieline.net.logserver.selection import Selection
from tieline.net.logserver.span import Span
from tieline.net.store.reading import Group

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


def run() -> None:
    """Decode it; raises if the loops cannot."""
    blob = msgspec.msgpack.encode([_RECORD])
    ByColumn(LOG, Selection(Question(), Settings()), _All(), _unexpected)([Group(0, 1, 0.0, blob)], Span(0, 1))


def _unexpected(groups: Sequence[Group], span: Span) -> Found:  # noqa: ARG001 - as ways are called
    raise RuntimeError("they do not read what a broker writes")
