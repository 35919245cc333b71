"""Columns of a table as the numbers that an index looks up: arrays all the way, no Python object per row.

The numbers are those that a broker makes of a message (:mod:`tieline.match.events`): what is null, not finite, or an
integer that float64 cannot hold is ``MISSING``; a time is seconds since 1970; a category is the number of a value that
some condition names, or ``OTHER``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieline.match.box import MISSING
from tieline.match.events import OTHER, Attribute, EventType, Get, Reading, Value
from tieline.match.events.kinds import EXACT
from tieline.pipeline.jobs.match.bound import BoundSubscriptions

Floats = NDArray[np.float64]

_MICROSECONDS: Final = 1e6


def column_of(position: int) -> str:
    """What the column of an attribute is called on its way: Spark would take a dot in a name for a path."""
    return f"a{position}"


def points(batch: pa.RecordBatch, bound: BoundSubscriptions) -> Floats:
    """One row of numbers for each row of a batch whose columns are called :func:`column_of`."""
    found = np.empty((batch.num_rows, len(bound.attributes)), np.float64)
    for position, attribute in enumerate(bound.attributes):
        found[:, position] = _column_numbers(
            batch.column(column_of(position)), attribute, bound.codes.get(position, {})
        )
    return found


def _column_numbers(column: pa.Array, attribute: Attribute, codes: Mapping[str, float]) -> Floats:
    if attribute.kind == "category":
        return _coded(column, codes)
    if attribute.kind == "timestamp":
        numbers = _floats(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())) / _MICROSECONDS
    elif attribute.kind == "boolean":
        numbers = _floats(column.cast(pa.int8()))
    else:
        numbers = _floats(column)
    if attribute.kind == "integer":
        numbers[np.abs(numbers) > EXACT] = np.nan
    numbers[~np.isfinite(numbers)] = MISSING
    return numbers


def _floats(column: pa.Array) -> Floats:
    """A copy of a column of numbers, with NaN for nulls."""
    whole = column.cast(pa.float64(), safe=False)
    return np.array(pc.fill_null(whole, float("nan")).to_numpy(zero_copy_only=False), np.float64)


def _coded(column: pa.Array, codes: Mapping[str, float]) -> Floats:
    """Each value that occurs is looked up once, and there are far fewer of them than rows."""
    whole = column.dictionary_encode()
    known = [codes.get(value, OTHER) for value in whole.dictionary.to_pylist()]
    by_index = np.array([*known, MISSING])
    places = pc.fill_null(whole.indices, len(known)).to_numpy(zero_copy_only=False)
    return np.asarray(by_index[places], np.float64)


class Values:
    """The attributes of a batch as conditions are evaluated with them; columns are unpacked when they are needed."""

    def __init__(self, batch: pa.RecordBatch, bound: BoundSubscriptions) -> None:
        self._batch = batch
        self._positions = {each.name: (position, each.kind) for position, each in enumerate(bound.attributes)}
        self._unpacked: dict[str, list[Value | None]] = {}

    def of(self, row: int) -> Get:
        """How the attributes of a row are read."""

        def get(name: str) -> Value | None:
            column = self._unpacked.get(name)
            if column is None:
                column = self._unpacked[name] = self._unpack(name)
            value: Value | None = column[row]
            return value

        return get

    def _unpack(self, name: str) -> list[Value | None]:
        position, kind = self._positions[name]
        column = self._batch.column(column_of(position))
        if kind in ("category", "boolean"):
            return list(column.to_pylist())
        # the numbers of the index, so that both agree in every bit
        numbers = _column_numbers(column, Attribute(name, kind), {})
        return [None if number == MISSING else number for number in numbers.tolist()]


class Readings:
    """The messages of one event type in a batch."""

    def __init__(
        self,
        event: EventType,
        bound: BoundSubscriptions,
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
        self.points = np.array([_message_numbers(each, bound) for each in self._found], np.float64)
        self.points = self.points.reshape(len(self._found), len(bound.attributes))

    def get(self, row: int) -> Get:
        """How the attributes of a message are read."""
        found = self._found[row]
        assert found is not None
        return found


def kept_attributes(column: pa.Array) -> list[dict[str, Value] | None]:
    """The log's column ``attributes`` as dictionaries: of number, text and flag the one that is set."""
    return [None if each is None else {name: _only(value) for name, value in each} for each in column.to_pylist()]


def _only(value: Mapping[str, Value | None]) -> Value:
    found: Value = next(each for each in value.values() if each is not None)
    return found


def _get(reading: Reading | None, kept: Mapping[str, Value] | None) -> Get | None:
    if reading is None or kept is None:
        return None if reading is None else reading.get
    # as in the log server: names and signs of Sparkplug come from a birth certificate that may be elsewhere
    return lambda name: kept[name] if name in kept else reading.get(name)


def _message_numbers(get: Get | None, bound: BoundSubscriptions) -> list[float]:
    if get is None:
        return [MISSING] * len(bound.attributes)
    return [
        _number(get(attribute.name), attribute, bound.codes.get(place, {}))
        for place, attribute in enumerate(bound.attributes)
    ]


def _number(value: Value | None, attribute: Attribute, codes: Mapping[str, float]) -> float:
    if value is None:
        return MISSING
    return codes.get(str(value), OTHER) if attribute.kind == "category" else float(value)
