"""Messages as they were sent, read again as a broker reads them: for the log, and for topics of no declared type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieline.match.box import MISSING
from tieline.match.events import OTHER, Attribute, EventType, Get, Reading, Value
from tieline.pipeline.jobs.match.plan import Plan


class Readings:
    """The messages of one event type in a batch."""

    def __init__(
        self,
        event: EventType,
        plan: Plan,
        topics: Sequence[str],
        payloads: Sequence[bytes],
        properties: Sequence[bytes | None],
        kept: Sequence[Mapping[str, Value] | None],
    ) -> None:
        """``kept`` is what the broker read when the message arrived, where the message alone does not say it."""
        self._found: list[Get | None] = [
            _get(event.read(payload, block or b"", topic), known if event.reads_topic else None)
            for topic, payload, block, known in zip(topics, payloads, properties, kept, strict=True)
        ]
        self.is_readable: NDArray[np.bool_] = np.array([each is not None for each in self._found], np.bool_)
        self.points = np.array([_numbers(each, plan) for each in self._found], np.float64)
        self.points = self.points.reshape(len(self._found), len(plan.attributes))

    def get(self, row: int) -> Get:
        """How the attributes of a message are read."""
        found = self._found[row]
        assert found is not None
        return found


def kept_attributes(column: pa.Array) -> list[dict[str, Value] | None]:
    """The log's column ``attributes`` as dictionaries: of number, text and flag the one that is set."""
    return [None if each is None else {name: _only(value) for name, value in each} for each in column.to_pylist()]


def _only(value: Mapping[str, Any]) -> Value:
    found: Value = next(each for each in value.values() if each is not None)
    return found


def _get(reading: Reading | None, kept: Mapping[str, Value] | None) -> Get | None:
    if reading is None or kept is None:
        return None if reading is None else reading.get
    # as in the log server: names and signs of Sparkplug come from a birth certificate that may be elsewhere
    return lambda name: kept[name] if name in kept else reading.get(name)


def _numbers(get: Get | None, plan: Plan) -> list[float]:
    if get is None:
        return [MISSING] * len(plan.attributes)
    return [
        _number(get(attribute.name), attribute, plan.codes.get(place, {}))
        for place, attribute in enumerate(plan.attributes)
    ]


def _number(value: Value | None, attribute: Attribute, codes: Mapping[str, float]) -> float:
    if value is None:
        return MISSING
    return codes.get(str(value), OTHER) if attribute.kind == "category" else float(value)
