"""Log records for tests, with the columns that a source gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tieline.pipeline.source.options import LOG_ARROW

_T0 = 1_772_366_400_000_000  # 2026-03-01T12:00:00Z, in microseconds


def prop(name: str, value: str) -> bytes:
    """A user property as it is on the wire."""
    return b"".join((b"\x26", *(len(each).to_bytes(2, "big") + each for each in (name.encode(), value.encode()))))


def record(
    offset: int, topic: str = "grid/1/reading", payload: bytes = b'{"voltage": null, "closed": null}', **more: Any
) -> dict[str, Any]:
    """One record; whatever is not said is usual."""
    micros = _T0 + offset * 1_000
    usual: dict[str, Any] = {
        "offset": offset,
        "received": micros,
        "received_ns": micros * 1_000,
        "publisher": "m1",
        "epoch": 1,
        "packet_id": 0,
        "dup": False,
        "qos": 0,
        "retain": False,
        "level": 0,
        "class": "normal",
        "topic": topic,
        "payload": payload,
        "properties": [],
        "raw_properties": b"",
        "digest": b"12345678",
        "event": None,
        "attributes": None,
        "shard": "edge",
    }
    return usual | more


def table(records: Sequence[dict[str, Any]]) -> pa.Table:
    """Records as the log server gives them."""
    return pa.table(
        {field.name: pa.array([each[field.name] for each in records], field.type) for field in LOG_ARROW},
        schema=LOG_ARROW,
    )
