"""Lakes with readings and incidents, landed as ingest lands them but without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tieline.conf.schema import Attribute, Event, Settings
from tieline.pipeline.lake import Lake
from tieline.pipeline.lake.columns import TIME
from tieline.pipeline.lake.layout import events

_READING = ("voltage", "frequency")
_INCIDENT = ("residual", "duration")


def settings(*, has_incidents: bool = True) -> Settings:
    """Event types as the microgrid world declares them."""
    types = {"reading": _type("reading", _READING, ("node",))}
    if has_incidents:
        types["incident"] = _type("incident", _INCIDENT, ("node", "kind"))
    return Settings(event=types)


def land(lake: Lake, event_type: str, rows: pa.Table, shard: str = "north") -> None:
    """Add rows with ``time`` (seconds since 1970) and attributes as one batch."""
    schema = lake.schema(events(event_type))
    count = rows.num_rows
    times = pc.cast(pc.multiply(rows["time"], 1e6), pa.int64()).cast(pa.timestamp("us")).cast(TIME)
    ours: dict[str, Any] = {
        "_offset": pa.array(range(count), pa.int64()),
        "_shard": pa.array([shard] * count),
        "_time": times,
        "_received": times,
        "_topic": pc.binary_join_element_wise("microgrid/a", rows["node"], event_type, "/"),
    }
    columns = [ours.get(field.name, rows[field.name] if field.name in rows.column_names else None) for field in schema]
    whole = pa.table(
        [
            pa.nulls(count, field.type) if column is None or field.name == "time" else column.cast(field.type)
            for field, column in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )
    days = pc.strftime(times, "%Y-%m-%d")
    with lake.plain.attempt() as attempt:
        for day in pc.unique(days).to_pylist():
            place = attempt.table(events(event_type)) / f"day={day}"
            place.mkdir(parents=True)
            pq.write_table(whole.filter(pc.equal(days, day)), place / "part-0.parquet")
        lake.land(attempt, state := lake.state(), state)


def empty(path: Path, *, has_incidents: bool = True) -> Lake:
    """A lake without a row."""
    return Lake.create(path, settings(has_incidents=has_incidents))


def _type(name: str, numbers: tuple[str, ...], categories: tuple[str, ...]) -> Event:
    return Event(
        topic=f"microgrid/+/+/{name}",
        attributes=(
            Attribute(name="time", kind="timestamp"),
            *(Attribute(name=each, kind="category") for each in categories),
            *(Attribute(name=each, kind="number", bounds=(0, 400)) for each in numbers),
        ),
    )
