"""Records of the log as lines: for people, or one JSON object each."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tieline.log.record import Occurrence, Record
from tieline.net.log import printable
from tieline.wire.properties import user_properties

Format = Literal["human", "json"]


def line(record: Record | Occurrence, style: Format) -> str:
    """One record."""
    if isinstance(record, Record):
        return _message_json(record) if style == "json" else _message(record)
    return _event_json(record) if style == "json" else _event(record)


def _message(record: Record) -> str:
    marks = f"q{record.qos}{' dup' if record.dup else ''}{' retain' if record.retain else ''}"
    who = printable(record.publisher) or "-"
    return (
        f"{record.offset:>8}  {_time(record.received)}  {marks}  {record.class_}  {who}  {printable(record.topic)}  "
        f"{_payload(record.payload)}"
    )


def _payload(payload: bytes) -> str:
    try:
        return printable(payload.decode())
    except UnicodeDecodeError:
        return f"0x{payload.hex()}"


def _message_json(record: Record) -> str:
    shown: dict[str, object] = {
        "offset": record.offset,
        "received": _time(record.received),
        "received_ns": record.received,
        "publisher": record.publisher,
        "epoch": record.epoch,
        "packet_id": record.packet_id,
        "dup": record.dup,
        "qos": record.qos,
        "retain": record.retain,
        "level": record.level,
        "class": record.class_,
        "topic": record.topic,
        **_bytes("payload", record.payload),
        "properties": user_properties(record.properties),
        "raw_properties": record.properties.hex(),
        "digest": record.digest.hex(),
        "attributes": record.attributes,
    }
    return msgspec.json.encode(shown).decode()


def _bytes(name: str, value: bytes) -> dict[str, str]:
    """Text as it is; other bytes under another name, so that neither is taken for the other."""
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _event(event: Occurrence) -> str:
    who, about = printable(event.client) or "-", printable(event.topic) or "-"
    detail = printable(msgspec.json.encode(event.detail).decode()) if event.detail else ""
    return f"{event.offset:>8}  {_time(event.time)}  {event.kind}  {who}  {about}  {detail}".rstrip()


def _event_json(event: Occurrence) -> str:
    shown = {
        "offset": event.offset,
        "time": _time(event.time),
        "time_ns": event.time,
        "kind": event.kind,
        "client": event.client,
        "topic": event.topic,
        "detail": event.detail,
    }
    return msgspec.json.encode(shown).decode()


def _time(nanoseconds: int) -> str:
    """To the microsecond, in UTC."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000:06d}Z"
