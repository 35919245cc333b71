"""Made-up meter readings in the shape of a broker's log: as many as a benchmark asks for, the same ones for a seed.

A hundred meters tell voltage, current, power and frequency once a second.  The frequency is that of the whole grid and
drifts; voltage and current follow the hour of the day and the meter.  So rows that are near in time are near in
frequency too, and a table in the order of time is not at its worst in a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tieline.log.columns import LOG, SHARD

Floats = NDArray[np.float64]

METERS: Final = 100
#: When the first reading is taken: the begin of a day.
START_S: Final = 1_772_409_600
_RUN: Final = "bench"
_TRANSIT_US: Final = 3_000
_MOST_PACKET_ID: Final = 65_535
_SEQ: Final = b"\x26\x00\x03seq\x00"  # user property, and the length of its name; the value's length follows

#: The event type, for brokers and for lakes.
EVENT_TYPE: Final = """
[event.reading]
topic = "grid/+/reading"
routing = ["voltage", "current", "frequency"]
attributes = [
    {name = "time", kind = "timestamp"},
    {name = "node", kind = "category"},
    {name = "voltage", bounds = [210.0, 250.0]},
    {name = "current", bounds = [0.0, 60.0]},
    {name = "power", bounds = [0.0, 15.0]},
    {name = "frequency", bounds = [49.8, 50.2]},
]
"""


@dataclass(frozen=True, slots=True)
class Readings:
    """The numbers of some readings, in the order of time."""

    first: int
    #: By row: the meter, and seconds since :data:`START_S`.
    meter: NDArray[np.int64]
    second: NDArray[np.int64]
    voltage: Floats
    current: Floats
    power: Floats
    frequency: Floats

    def __len__(self) -> int:
        return len(self.meter)


def readings(first: int, count: int, *, seed: int = 1) -> Readings:
    """The readings with the numbers from ``first`` on; the same ones for the same seed and the same portion."""
    number = np.arange(first, first + count)
    meter, second = number % METERS, number // METERS
    random = np.random.default_rng([seed, first])
    habit = np.random.default_rng(seed).uniform(size=(METERS, 3))
    hour = second / 3_600.0
    demand = 0.55 + 0.35 * np.sin((hour + 4 * habit[meter, 0]) * (2 * np.pi / 24)) + random.normal(0, 0.05, count)
    current = np.clip(2 + 50 * habit[meter, 1] * np.clip(demand, 0.02, None), 0, 60)
    voltage = np.clip(236 + 8 * habit[meter, 2] - 0.22 * current + random.normal(0, 0.8, count), 210, 250)
    frequency = np.clip(50 + _drift(second, seed) + random.normal(0, 0.002, count), 49.8, 50.2)
    return Readings(first, meter, second, voltage, current, voltage * current / 1_000, frequency)


def _drift(second: NDArray[np.int64], seed: int) -> Floats:
    """The grid's deviation from 50 Hz, the same for all meters in one second.

    A sum of slow waves has no memory, so any stretch of time can be made by itself.
    """
    phases = np.random.default_rng([seed, 50]).uniform(0, 2 * np.pi, 12)
    periods = np.geomspace(47.0, 7_200.0, 12)
    seconds, place = np.unique(second, return_inverse=True)
    waves = np.sin(seconds[:, None] * (2 * np.pi / periods) + phases) @ np.linspace(0.004, 0.02, 12)
    return np.asarray(waves[place], np.float64)


def payloads(rows: Readings) -> pa.Array:
    """What the meters send: JSON."""
    pieces = [
        '{"time":', _text(START_S + rows.second), ',"node":"n', _text(rows.meter), '","voltage":',
        _rounded(rows.voltage, 2), ',"current":', _rounded(rows.current, 2), ',"power":', _rounded(rows.power, 3),
        ',"frequency":', _rounded(rows.frequency, 4), "}",
    ]  # fmt: skip
    return pc.binary_join_element_wise(*pieces, "").cast(pa.binary())


def log_table(rows: Readings, *, shard: str = "bench") -> pa.Table:
    """The readings as records of a log, QoS 1 with ``seq``."""
    count = len(rows)
    number = rows.first + np.arange(count)
    received_us = (START_S + rows.second) * 1_000_000 + _TRANSIT_US
    seq = pc.binary_join_element_wise(f"{_RUN}/", _text(number // METERS), "")
    lengths = pa.array([bytes([length]) for length in range(256)], pa.binary())
    raw = pc.binary_join_element_wise(_SEQ, lengths.take(pc.binary_length(seq)), seq.cast(pa.binary()), b"")
    pairs = pa.StructArray.from_arrays([_same("seq", count), seq], fields=list(LOG.field("properties").type.value_type))
    digests = np.random.default_rng([rows.first, 8]).bytes(8 * count)
    columns = {
        "offset": number,
        "received": pa.array(received_us).cast(LOG.field("received").type),
        "received_ns": received_us * 1_000,
        "publisher": pc.binary_join_element_wise("meter-", _text(rows.meter), ""),
        "epoch": np.ones(count, np.int64),
        "packet_id": ((number // METERS) % _MOST_PACKET_ID + 1).astype(np.int32),
        "dup": np.zeros(count, bool),
        "qos": np.ones(count, np.int8),
        "retain": np.zeros(count, bool),
        "level": np.zeros(count, np.int8),
        "class": _same("normal", count),
        "topic": topics(rows),
        "payload": payloads(rows),
        "properties": pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), pairs),
        "raw_properties": raw,
        "digest": pa.Array.from_buffers(pa.binary(8), count, [None, pa.py_buffer(digests)]).cast(pa.binary()),
        "event": _same("reading", count),
        "attributes": pa.nulls(count, LOG.field("attributes").type),
        "shard": _same(shard, count),
    }
    schema = LOG.append(SHARD)
    return pa.table([_array(columns[field.name], field.type) for field in schema], schema=schema)


def topics(rows: Readings) -> pa.Array:
    """Where the meters send it."""
    return pc.binary_join_element_wise("grid/n", _text(rows.meter), "/reading", "")


def write_history(directory: Path, count: int, *, rows_per_file: int, seed: int = 1) -> list[Path]:
    """A directory of history files, as ``tieline pipeline ingest --history`` takes them; returns them in order."""
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for part in portions(count, rows_per_file):
        path = directory / f"part-{len(written):05}.parquet"
        table = log_table(readings(part.start, len(part), seed=seed))
        pq.write_table(table, path, compression="zstd", compression_level=1, row_group_size=131_072)
        written.append(path)
    return written


def portions(count: int, most: int) -> Iterator[range]:
    """A count in pieces."""
    for first in range(0, count, most):
        yield range(first, min(first + most, count))


def _text(numbers: NDArray[np.int64]) -> pa.Array:
    return pa.array(numbers, pa.int64()).cast(pa.string())


def _rounded(numbers: Floats, digits: int) -> pa.Array:
    return pa.array(np.round(numbers, digits)).cast(pa.string())


def _same(text: str, count: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(count, np.int8)))


def _array(values: pa.Array | NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
