"""Payloads in Sparkplug B: metrics by name, or by the alias that a birth certificate gave them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tieline.conf.schema import Attribute
from tieline.match.events.births import Birth, Births
from tieline.match.events.codec import Decoded, declared
from tieline.match.events.kinds import Value
from tieline.match.events.sparkplug_schema import DataType, metrics, payload_class

#: Bits of the signed integers, which travel as unsigned ones in two's complement.
_SIGNED: Final[dict[int, int]] = {DataType.INT8: 8, DataType.INT16: 16, DataType.INT32: 32, DataType.INT64: 64}


class SparkplugPayload:
    """Reads Sparkplug B; see :class:`tieline.match.events.codec.Codec`.  A place is the whole name of a metric."""

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
