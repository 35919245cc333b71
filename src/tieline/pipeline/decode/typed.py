"""The records of one event type as columns: fast where payloads are as declared, one by one where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieline.conf.schema import Attribute
from tieline.match.box import MISSING
from tieline.match.events import EventType, Value
from tieline.match.events.kinds import NUMERIC
from tieline.pipeline.decode.births import Follower
from tieline.pipeline.decode.reasons import EARLIEST, LATEST, Bad, examined, outside
from tieline.pipeline.lake.columns import TIME, of_kind

#: What a record says, attribute by attribute; or why it says nothing that a table could hold.
Row = Sequence[Value | None] | Bad


class Columns(NamedTuple):
    """What some records say."""

    #: One array per declared attribute, for the good records only.
    arrays: dict[str, pa.Array]
    #: Which records are good.
    good: NDArray[np.bool_]
    #: Why the others are not, in their order.
    reasons: list[str]


class Typed:
    """Reads the records of one event type."""

    def __init__(self, event_type: EventType, written_as: str) -> None:
        self._type = event_type
        self._written_as = written_as

    def read(self, records: pa.Table, follower: Follower) -> Columns:
        """The columns of some records of this type, in the order of the log if the type is Sparkplug."""
        payloads: list[bytes] = records["payload"].to_pylist()
        if self._written_as == "sparkplug":
            rows = self._followed(records, payloads, follower)
        else:
            rows = self._plain(records, payloads)
        reasons: list[str] = []
        good = np.ones(len(rows), bool)
        for place, row in enumerate(rows):
            if isinstance(row, Bad):
                good[place] = False
                reasons.append(str(row))
        kept = [row for row in rows if not isinstance(row, Bad)]
        return self._checked(Columns(self._arrays(kept), good, reasons))

    def _plain(self, records: pa.Table, payloads: list[bytes]) -> list[Row]:
        said = self._type.values(payloads)
        lacking = [place for place, row in enumerate(said) if row is None or MISSING in row]
        rows: list[Row] = [row or () for row in said]
        if lacking:
            properties = records["raw_properties"].take(pa.array(lacking)).to_pylist()
            for place, block in zip(lacking, properties, strict=True):
                rows[place] = self._examined(payloads[place], block, "", is_readable=said[place] is not None)
        return rows

    def _followed(self, records: pa.Table, payloads: list[bytes], follower: Follower) -> list[Row]:
        """Aliases mean what the last birth said, so every record is read with the births before it."""
        rows: list[Row] = []
        places = zip(
            records["shard"].to_pylist(),
            records["offset"].to_pylist(),
            records["topic"].to_pylist(),
            records["raw_properties"].to_pylist(),
            payloads,
            strict=True,
        )
        for shard, offset, topic, properties, payload in places:
            follower.reach(shard, offset)
            here = follower.events.types[self._type.name]
            is_readable = here.values((payload,), topic)[0] is not None
            rows.append(self._examined(payload, properties, topic, is_readable=is_readable, event_type=here))
        return rows

    def _examined(
        self, payload: bytes, properties: bytes, topic: str, *, is_readable: bool, event_type: EventType | None = None
    ) -> list[Value | None] | Bad:
        try:
            return examined(
                event_type or self._type, self._written_as, payload, properties, topic, is_readable=is_readable
            )
        except Bad as problem:
            return problem

    def _arrays(self, rows: Sequence[Sequence[Value | None]]) -> dict[str, pa.Array]:
        columns: Sequence[Sequence[Value | None]] = (
            list(zip(*rows, strict=True)) if rows else [()] * len(self._type.attributes)
        )
        return {
            attribute.name: _array(attribute, values)
            for attribute, values in zip(self._type.attributes, columns, strict=True)
        }

    def _checked(self, found: Columns) -> Columns:
        """Move records whose times no table can hold to the bad ones."""
        fits = np.ones(int(found.good.sum()), bool)
        reasons = np.full(len(fits), None, object)
        arrays: dict[str, pa.Array] = {}
        for attribute in self._type.attributes:
            array = found.arrays[attribute.name]
            if attribute.kind == "timestamp":
                seconds = array.to_numpy(zero_copy_only=False)
                beyond = fits & ~(np.isnan(seconds) | ((seconds >= EARLIEST) & (seconds <= LATEST)))
                reasons[beyond] = outside(attribute.name)
                fits &= ~beyond
                micros = np.round(np.where(fits & ~np.isnan(seconds), seconds, 0.0) * 1e6).astype(np.int64)
                array = pa.array(micros, pa.int64(), mask=np.isnan(seconds)).cast(TIME)
            arrays[attribute.name] = array
        if fits.all():
            return Columns(arrays, found.good, found.reasons)
        kept = pa.array(fits)
        all_reasons = np.full(len(found.good), None, object)
        all_reasons[~found.good] = found.reasons
        all_reasons[found.good] = reasons
        good = found.good.copy()
        good[found.good] = fits
        return Columns({name: array.filter(kept) for name, array in arrays.items()}, good, list(all_reasons[~good]))


def _array(attribute: Attribute, values: Sequence[Value | None]) -> pa.Array:
    """A column; times stay seconds here."""
    if attribute.kind in NUMERIC:
        numbers = np.array(values, np.float64)  # None becomes NaN
        numbers[numbers == MISSING] = np.nan
        if attribute.kind == "integer":
            absent = np.isnan(numbers)
            return pa.array(np.where(absent, 0.0, numbers).astype(np.int64), mask=absent)
        if attribute.kind == "timestamp":
            return pa.array(numbers)
        return pa.array(numbers, mask=np.isnan(numbers))
    kind: type = str if attribute.kind == "category" else bool
    return pa.array([value if value.__class__ is kind else None for value in values], of_kind(attribute.kind))
