"""The part of Sparkplug B's message definition that holds values, as protobuf classes made at run time.

Field numbers and types are those of the Eclipse Sparkplug specification, section 6.4.  Properties, data sets and
templates are left out: protobuf skips fields that a definition does not know.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any, Final

from tieline.extras import needs

_PACKAGE: Final = "tieline.sparkplug"

#: Metrics of one payload; each is an object, and an empty one takes two bytes on the wire.
MOST_METRICS: Final = 10_000


class DataType(IntEnum):
    """Data types of metrics whose values are scalars."""

    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT = 9
    DOUBLE = 10
    BOOLEAN = 11
    STRING = 12
    DATE_TIME = 13
    TEXT = 14
    UUID = 15


def metrics(payload: bytes) -> list[Any] | None:
    """The metrics of a payload; None if it is not Sparkplug B, or too much of it."""
    make, problems = payload_class()
    message = make()
    try:
        message.ParseFromString(payload)
        if len(message.metrics) > MOST_METRICS:
            return None
        found = list(message.metrics)
    except problems:
        return None
    # a text that is not UTF-8 is handed over as bytes
    return found if all(isinstance(metric.name, str) for metric in found) else None


@cache
def payload_class() -> tuple[Any, tuple[type[Exception], ...]]:
    """The class of a payload, whose ``metrics`` have a name, an alias, a data type and one value, and what parsing one
    may raise.
    """
    with needs("payloads"):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from google.protobuf.message import DecodeError

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="tieline/sparkplug.proto", package=_PACKAGE, syntax="proto2")

    metric = file.message_type.add(name="Metric")
    metric.oneof_decl.add(name="value")
    for name, number, kind in (
        ("name", 1, kinds.TYPE_STRING),
        ("alias", 2, kinds.TYPE_UINT64),
        ("timestamp", 3, kinds.TYPE_UINT64),
        ("datatype", 4, kinds.TYPE_UINT32),
        ("is_null", 7, kinds.TYPE_BOOL),
    ):
        metric.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    for name, number, kind in (
        ("int_value", 10, kinds.TYPE_UINT32),
        ("long_value", 11, kinds.TYPE_UINT64),
        ("float_value", 12, kinds.TYPE_FLOAT),
        ("double_value", 13, kinds.TYPE_DOUBLE),
        ("boolean_value", 14, kinds.TYPE_BOOL),
        ("string_value", 15, kinds.TYPE_STRING),
    ):
        metric.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL, oneof_index=0)

    payload = file.message_type.add(name="Payload")
    payload.field.add(name="timestamp", number=1, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)
    payload.field.add(
        name="metrics",
        number=2,
        type=kinds.TYPE_MESSAGE,
        type_name=f".{_PACKAGE}.Metric",
        label=kinds.LABEL_REPEATED,
    )
    payload.field.add(name="seq", number=3, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Payload"))
    return made, (DecodeError, ValueError, RecursionError)
