"""A batch of log records becomes rows of tables: every record is in exactly one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieline.match.events import Events
from tieline.match.space_arrays import Points, keys
from tieline.pipeline.decode.births import Birth, Follower, Timeline
from tieline.pipeline.decode.records import ours, quarantined
from tieline.pipeline.decode.typed import Typed
from tieline.pipeline.lake.columns import OURS, of_kind
from tieline.pipeline.lake.document import Clustering, Document
from tieline.pipeline.lake.layout import OTHER, QUARANTINE, Table, events

#: Days of one portion of records that get files; those with the most rows count first.
MOST_DAYS: Final = 400


def few_days(
    records: pa.Table, time: pa.Array | None, good: NDArray[np.bool_], reasons: list[str]
) -> tuple[NDArray[np.bool_], list[str], pa.Array | None]:
    """Which records are still good, why the others are not, and which of the good ones stay (None: all of them)."""
    if time is None or not pa.types.is_timestamp(time.type):
        return good, reasons, None
    days = pc.floor_temporal(time, unit="day")
    counted = pc.value_counts(days.drop_null())
    if len(counted) <= MOST_DAYS:
        return good, reasons, None
    order = np.argsort(-counted.field("counts").to_numpy(), kind="stable")[:MOST_DAYS]
    stays = pc.or_(pc.is_in(days, value_set=counted.field("values").take(pa.array(order))), pc.is_null(days))
    kept = np.asarray(stays.to_numpy(zero_copy_only=False), bool)
    explained = np.full(len(records), None, object)
    explained[~good] = reasons
    still = good.copy()
    still[good] = kept
    explained[good & ~still] = f"its time lies on one of too many different days: a portion of records has {MOST_DAYS}"
    return still, list(explained[~still]), pa.array(kept)


class Curve:
    """The curve of one event type.  A value that is missing lies in the last cell of its axis."""

    def __init__(self, clustering: Clustering) -> None:
        self._attributes = clustering.attributes
        self._space = clustering.space()

    def keys(self, arrays: Mapping[str, pa.Array], count: int) -> pa.Array:
        """The keys of some rows, from the columns of their attributes."""
        points = np.full((count, len(self._attributes)), np.nan)
        for axis, name in enumerate(self._attributes):
            if name in arrays:
                points[:, axis] = _numbers(arrays[name])
        # the order is chosen so that a key is below 2**62
        return pa.array(keys(self._space, points).astype(np.int64))


def _numbers(array: pa.Array) -> Points:
    """A column as numbers, NaN where it is null; times in seconds, as their bounds are."""
    if pa.types.is_timestamp(array.type):
        micros = array.cast(pa.int64())
        found = micros.cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e6
    else:
        found = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.float64)


#: The attribute that says when an event happened, if it is of kind timestamp.
_EVENT_TIME: Final = "time"
_HILBERT: Final = OURS.get_field_index("_hilbert")


class Decoded(NamedTuple):
    """The rows of a batch, by table; each has the columns of its table and those of no other."""

    rows: dict[Table, pa.Table]


class Decoder:
    """Decodes the records of logs against the event types that a lake knows."""

    def __init__(self, document: Document, births: tuple[Birth, ...] = ()) -> None:
        settings = document.settings()
        self._document = document
        self._follower = Follower(settings, Timeline(births))
        self._events = Events(settings)
        self._typed = {name: Typed(each, settings.event[name].payload) for name, each in self._events.types.items()}
        self._curves = {
            name: Curve(known.clustering) for name, known in document.types.items() if known.clustering is not None
        }

    def decode(self, records: pa.Table) -> Decoded:
        """The rows of some records (columns ``NEEDED``)."""
        found: dict[Table, pa.Table] = {}
        bad: list[pa.Table] = []
        names, codes = self._types(records["topic"])
        for code, name in enumerate(names):
            places = np.flatnonzero(codes == code)
            if len(places) == 0:
                continue
            here = records if len(places) == len(records) else records.take(pa.array(places))
            if name is None:
                found[events(OTHER)] = ours(here).append_column("_payload", here["payload"])
                continue
            rows, refused = self._declared(name, here)
            if len(rows):
                found[events(name)] = rows
            if refused is not None:
                bad.append(refused)
        if bad:
            found[Table((QUARANTINE,))] = pa.concat_tables(bad)
        return Decoded(found)

    def names(self, topics: pa.ChunkedArray) -> list[str | None]:
        """The event type of each topic; None where none is declared."""
        names, codes = self._types(topics)
        return [names[code] for code in codes]

    def _types(self, topics: pa.ChunkedArray) -> tuple[list[str | None], NDArray[np.int64]]:
        """The event types of some records: their names, and which of them each record has."""
        encoded = topics.combine_chunks().dictionary_encode()
        names: list[str | None] = [None]
        number: dict[str, int] = {}
        of_topic = np.zeros(len(encoded.dictionary), np.int64)
        for place, topic in enumerate(encoded.dictionary.to_pylist()):
            name = self._events.of(topic).name
            if name in self._typed:
                if name not in number:
                    number[name] = len(names)
                    names.append(name)
                of_topic[place] = number[name]
        return names, of_topic[encoded.indices.to_numpy(zero_copy_only=False)]

    def _declared(self, name: str, records: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        """The rows of one type, and its bad records with their reasons."""
        found = self._typed[name].read(records, self._follower)
        good, reasons, arrays = found.good, found.reasons, found.arrays
        time = arrays.get(_EVENT_TIME)
        good, reasons, kept = few_days(records, time, good, reasons)
        if kept is not None:
            arrays = {each: array.filter(kept) for each, array in arrays.items()}
        refused: pa.Table | None = None
        if reasons:
            refused = quarantined(records.filter(pa.array(~good)), name, reasons)
            records = records.filter(pa.array(good))
        rows = ours(records, arrays.get(_EVENT_TIME))
        if name in self._curves:
            rows = rows.set_column(_HILBERT, "_hilbert", self._curves[name].keys(arrays, len(rows)))
        for attribute, kind in self._document.types[name].kinds().items():
            array = arrays.get(attribute)  # None: an attribute of the past
            rows = rows.append_column(attribute, pa.nulls(len(rows), of_kind(kind)) if array is None else array)
        return rows, refused
