"""Payloads in Sparkplug B: metrics by name, or by the alias that a birth certificate gave them.

The part of Sparkplug B's message definition that holds values is made into protobuf classes at run time.  Field numbers
and types are those of the Eclipse Sparkplug specification, section 6.4.  Properties, data sets and templates are left
out: protobuf skips fields that a definition does not know.

A birth certificate names every metric with its data type and may give it a number, the alias; later messages carry only
the number.  The names belong to one edge node or device, told apart by the topic: ``spBv1.0/group/NBIRTH/edge`` and
``spBv1.0/group/DBIRTH/edge/device``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Any, Final  # Any: the protobuf classes are made at run time

from tieline.conf.schema import Attribute
from tieline.extras import needs
from tieline.match.events.kinds import Value
from tieline.match.events.reading import Decoded, declared

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


_NAMESPACE: Final = "spBv1.0"
_BIRTHS: Final = frozenset({"NBIRTH", "DBIRTH"})

#: Edge nodes and devices remembered; the one unused for longest is forgotten first.
MOST_DEVICES: Final = 10_000
#: Characters of all names remembered: long names forget devices earlier.
MOST_CHARACTERS: Final = 16_777_216


@dataclass(slots=True)
class Birth:
    """The metrics of one edge node or device."""

    names: dict[int, str] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)

    @property
    def characters(self) -> int:
        return sum(map(len, self.types))


_UNBORN: Final = Birth()


class Births:
    """Birth certificates by edge node or device."""

    __slots__ = ("_characters", "_is_looking", "_known", "_most")

    def __init__(self, most: int = MOST_DEVICES) -> None:
        self._known: OrderedDict[tuple[str, ...], Birth] = OrderedDict()
        #: The sum over all that are known.
        self._characters = 0
        self._most = most
        #: Somebody only asks what a message would say.
        self._is_looking = False

    @contextmanager
    def looking(self) -> Iterator[None]:
        """While this lasts, nothing is learned and nothing counts as used."""
        self._is_looking = True
        try:
            yield
        finally:
            self._is_looking = False

    def __len__(self) -> int:
        return len(self._known)

    @staticmethod
    def is_birth(topic: str) -> bool:
        """Whether messages of a topic are birth certificates."""
        levels = topic.split("/")
        return len(levels) in (4, 5) and levels[0] == _NAMESPACE and levels[2] in _BIRTHS

    def of(self, topic: str) -> Birth:
        """What is known about the sender of a topic's messages."""
        key = _sender(topic)
        birth = self._known.get(key)
        if birth is None:
            return _UNBORN
        if not self._is_looking:
            self._known.move_to_end(key)
        return birth

    def learn(self, topic: str, payload: bytes) -> None:
        """Remember a birth certificate; other messages are ignored."""
        if not self.is_birth(topic):
            return
        found = metrics(payload)
        if found is not None:
            self.record(topic, found)

    def record(self, topic: str, born: Iterable[Any]) -> None:
        """Remember the metrics of a birth certificate in place of what the sender said before."""
        if self._is_looking:
            return
        birth = Birth()
        for metric in born:
            if metric.name:
                birth.types[metric.name] = metric.datatype
                if metric.HasField("alias"):
                    birth.names[metric.alias] = metric.name
        key = _sender(topic)
        self._forget(key)
        self._known[key] = birth
        self._characters += birth.characters
        while len(self._known) > self._most or self._characters > MOST_CHARACTERS:
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[str, ...]) -> None:
        birth = self._known.pop(key, None)
        if birth is not None:
            self._characters -= birth.characters


def _sender(topic: str) -> tuple[str, ...]:
    """Group and edge node, and the device if there is one."""
    levels = topic.split("/")
    return (*levels[1:2], *levels[3:5])


#: Bits of the signed integers, which travel as unsigned ones in two's complement.
_SIGNED: Final[dict[int, int]] = {DataType.INT8: 8, DataType.INT16: 16, DataType.INT32: 32, DataType.INT64: 64}


class SparkplugPayload:
    """Reads Sparkplug B; see :class:`tieline.match.events.reading.Codec`.  A place is the whole name of a metric."""

    def __init__(self, attributes: Sequence[Attribute], births: Births) -> None:
        self._attributes = tuple(attributes)
        self._births = births
        payload_class()  # a missing library is better known at the start

    def read(self, payload: bytes, topic: str) -> Decoded | None:
        found = metrics(payload)
        if found is None:
            return None
        if self._births.is_birth(topic):
            self._births.record(topic, found)
        birth = self._births.of(topic)
        by_name: dict[str, Any] = {}
        for metric in found:
            name = metric.name or birth.names.get(metric.alias)
            if name:
                by_name[name] = metric

        def find(name: str) -> object:
            metric = by_name.get(name)
            return None if metric is None else _value(metric, name, birth)

        return Decoded(declared(self._attributes, find), find)

    def rows(self, payloads: Sequence[bytes], topic: str) -> list[list[Value] | None]:
        found = [self.read(payload, topic) for payload in payloads]
        return [None if each is None else each.values for each in found]


def _value(metric: Any, name: str, birth: Birth) -> object:
    """The value of a metric, with the sign and the meaning that its data type gives it."""
    field = metric.WhichOneof("value")
    if field is None or metric.is_null:
        return None
    value = getattr(metric, field)
    if field not in ("int_value", "long_value"):
        return value
    # only a birth certificate must say the data type; what follows may leave it out
    data_type = metric.datatype or birth.types.get(name, 0)
    bits = _SIGNED.get(data_type)
    if bits is not None:
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value
    return value / 1000 if data_type == DataType.DATE_TIME else value
