"""What a lake keeps about itself: ``lake.json`` with every column that its types ever had, and the state after a batch.

A type may gain attributes: files of before have no such column, and readers see null.  A type may lose attributes: the
column stays.  An attribute may not change its kind, because one column has one type.

The state says how far each broker's log was read, and which history files were.  It lands with the batch, in the same
step, so that it is never ahead of the tables nor behind them.

In lakes of version 1 the place in the logs was that of a streaming query, in Spark's checkpoint
(:mod:`tieline.pipeline.lake.earlier`).  Programs of that time would begin anew where they find none, so the version
says that it is in the state now.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal  # Any: values of JSON

import msgspec
import pyarrow as pa

from tieline.conf.schema import AttributeKind, Event, Settings
from tieline.match.events import EventType
from tieline.match.space import Space
from tieline.pipeline.lake.columns import arrow_schema, check_names
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.layout import Changed, LakeError, NotALake, Overtaken, Table

VERSION: Final = 2
_READ: Final = (1, VERSION)
Format = Literal["parquet", "delta"]
#: How a sentence ends that is said to a batch which another one came before.
SOMEBODY_ELSE: Final = "somebody else fills this lake. Nothing of the latter was brought in."
#: Bits of the curve's key: a signed 64-bit column holds it.
_BITS: Final = 62
#: Cells along one axis: 65,536 are finer than row groups can be.
_MOST_ORDER: Final = 16


class Column(msgspec.Struct, frozen=True):
    """An attribute's column, since when it is there, and since when no declaration has it any longer."""

    kind: AttributeKind
    since: str
    until: str | None = None


class Clustering(msgspec.Struct, frozen=True):
    """How the rows of a type are laid out: the attributes whose cells the Hilbert curve runs through.

    It stays as it was when the type became known, so that the keys of all files are comparable.
    """

    attributes: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    order: int

    def space(self) -> Space:
        return Space(self.bounds, self.order)


class KnownType(msgspec.Struct, frozen=True):
    """An event type as the tables know it."""

    #: As it was declared last.
    declared: Event
    #: Every attribute that it ever had, in the order of appearance.
    columns: dict[str, Column]
    #: None if it has no bounded number.
    clustering: Clustering | None

    def kinds(self) -> dict[str, AttributeKind]:
        return {name: column.kind for name, column in self.columns.items()}


class Document(msgspec.Struct, frozen=True):
    """The content of ``lake.json``."""

    version: int
    id: str
    created: str
    format: Format = "parquet"
    types: dict[str, KnownType] = {}
    #: In lakes of version 1, the streaming query that filled it.
    query: str | None = None

    def evolved(self, declared: Mapping[str, Event], now: str) -> Document:
        """The document after a configuration was read; raises :class:`Changed` if the tables cannot follow it."""
        types = dict(self.types)
        for name, event in declared.items():
            check_names(name, event.attributes)
            types[name] = _evolved(name, types.get(name), event, now)
        return msgspec.structs.replace(self, types=types)

    def schema(self, table: Table) -> pa.Schema:
        """The columns in the files of a table, as they are written today."""
        known = None if table.event_type is None else self.types.get(table.event_type)
        return arrow_schema(table, {} if known is None else known.kinds())

    def settings(self) -> Settings:
        """The event types as they were declared last: enough to decode without the configuration file."""
        return Settings(event={name: known.declared for name, known in self.types.items()})


def new_document(form: Format, now: str) -> Document:
    """A new lake without event types."""
    return Document(version=VERSION, id=secrets.token_hex(8), created=now, format=form)


def load_document(path: Path) -> Document:
    """What a file says; raises :class:`NotALake`."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotALake(f"{path.parent} is no lake: it has no {path.name}.") from None
    try:
        version = msgspec.json.decode(data, type=dict[str, object]).get("version")
        if version not in _READ:
            raise NotALake(f"{path} is of version {version}; this Tieline reads versions {_READ[0]} to {VERSION}.")
        return msgspec.json.decode(data, type=Document)
    except msgspec.DecodeError as problem:
        raise NotALake(f"{path} cannot be read: {problem}.") from None


def save_document(document: Document, path: Path, disk: Disk) -> None:
    """Put a document in place of the old one, in one step."""
    disk.write(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def check_empty(root: Path, document: Path) -> None:
    """Refuse a directory in which something is, for a new lake."""
    if document.exists():
        raise LakeError(f"{root} is a lake already.")
    if root.is_dir() and any(root.iterdir()):
        raise LakeError(f"{root} is not empty, and no lake.")


def check_followed(where: str, newest: State, followed: State) -> None:
    """Raise :class:`Overtaken` unless a batch was made for the lake as it is.

    Two states are the same if all is: places, files and numbers.  A number alone would not say it, since a copy of the
    lake may have been put in place that has come as far with other batches.
    """
    if newest == followed:
        return
    what = (
        f"batch {newest.batch} has landed in {where} while another one was made that follows batch {followed.batch}"
        if newest.batch != followed.batch
        else f"batch {newest.batch} of {where} is not the one that another batch was made to follow"
    )
    raise Overtaken(f"{what}: {SOMEBODY_ELSE}")


def now_text() -> str:
    """The time, as documents write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _evolved(name: str, known: KnownType | None, event: Event, now: str) -> KnownType:
    columns = {} if known is None else dict(known.columns)
    lower = {each.lower(): each for each in columns}
    for attribute in event.attributes:
        before = columns.get(attribute.name)
        if before is None and attribute.name.lower() in lower:
            raise Changed(
                f"event type {name} gains the attribute {attribute.name}, and its table has a column "
                f"{lower[attribute.name.lower()]}: readers do not tell capitals from small letters."
            )
        if before is not None and before.kind != attribute.kind:
            raise Changed(
                f"attribute {attribute.name} of event type {name} is a {attribute.kind} now and a {before.kind} in the "
                "tables: one column has one type. Give the attribute another name (path says what the payload calls "
                "it), or begin another lake."
            )
        columns[attribute.name] = Column(attribute.kind, now if before is None else before.since)
    present = {attribute.name for attribute in event.attributes}
    for each, column in columns.items():
        if each not in present and column.until is None:
            columns[each] = msgspec.structs.replace(column, until=now)
    return KnownType(event, columns, _clustering(name, event) if known is None else known.clustering)


def _clustering(name: str, event: Event) -> Clustering | None:
    attributes = EventType(name, event.topic, event.attributes, routing=event.routing).routing
    bounds = {each.name: each.bounds for each in event.attributes if each.bounds is not None}
    if not attributes:
        return None
    return Clustering(
        attributes, tuple(bounds[each] for each in attributes), min(_MOST_ORDER, _BITS // len(attributes))
    )


_NAME: Final = "state.json"
#: States kept besides the newest, for people who look for a fault.
_SPARE: Final = 1


class State(msgspec.Struct, frozen=True):
    """The state after a batch."""

    #: The number of the batch; -1 before the first.
    batch: int = -1
    #: In lakes of version 1, the newest batch of each streaming query, by the query's own count.
    queries: dict[str, int] = {}
    #: The offset behind the last one seen of each broker's log.
    positions: dict[str, int] = {}
    #: Where reading the logs goes on, as :func:`tieline.pipeline.source.offsets.encode` says it.
    place: dict[str, Any] = {}
    #: In lakes of version 1, history files that were taken, by their name below their directory, with their sizes.
    history: dict[str, int] = {}
    #: History files that were taken since: where each was, by a digest of its content.
    files: dict[str, str] = {}
    #: Rows that ever landed, by table.
    rows: dict[str, int] = {}
    #: When the batch landed.
    landed: str | None = None


def newest_state(states: Path) -> tuple[State, Path | None]:
    """The state after the last batch that landed, and the directory in which more may lie."""
    found = _numbers(states)
    if not found:
        return State(), None
    directory = states / str(found[-1])
    try:
        return msgspec.json.decode((directory / _NAME).read_bytes(), type=State), directory
    except (OSError, msgspec.DecodeError) as problem:
        raise LakeError(f"{directory / _NAME} cannot be read: {problem}.") from None


def save_state(state: State, directory: Path, disk: Disk) -> None:
    """Write a state into a directory."""
    disk.make(directory)
    disk.write(directory / _NAME, msgspec.json.encode(state))


def prune_states(states: Path, disk: Disk) -> None:
    """Remove the states that newer ones have replaced."""
    for number in _numbers(states)[: -1 - _SPARE]:
        disk.remove(states / str(number))


def _numbers(states: Path) -> list[int]:
    if not states.is_dir():
        return []
    return sorted(int(each.name) for each in states.iterdir() if each.name.isdecimal())
