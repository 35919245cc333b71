"""Lakes of Delta tables as versions 1 and 2 kept them: in a directory, with a document and states beside the tables.

Bringing one forward begins its book with what was known, lands what was decided, and takes the document away, so that
programs of that time find no lake.  It may be interrupted anywhere and is begun again by whoever opens the lake next.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from tieline.pipeline.lake import document as documents
from tieline.pipeline.lake.columns import BATCH
from tieline.pipeline.lake.delta import book, commits
from tieline.pipeline.lake.delta.book import Page
from tieline.pipeline.lake.delta.store import Store
from tieline.pipeline.lake.delta.target import InPlace
from tieline.pipeline.lake.disk import Disk, locked
from tieline.pipeline.lake.document import Document
from tieline.pipeline.lake.layout import Layout, NotALake, events, table

#: What the document of before is called when the book has taken its place.
_KEPT = "lake.json.before"


def is_there(directory: Path) -> bool:
    """Whether a directory has a document that says that the tables are Delta tables."""
    try:
        return documents.load_document(directory / "lake.json").format == "delta"
    except NotALake:
        return False


def bring_forward(store: Store, directory: Path) -> None:
    """Let a lake of before be as lakes are today."""
    layout, disk = Layout(directory), Disk()
    with locked(layout.lock):
        document = documents.load_document(layout.document)
        if not book.is_there(store):
            _land(store, layout, document, disk)
            state, folder = documents.newest_state(layout.state)
            memory = {} if folder is None else {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
            book.create(store, Page(document, state, {}, memory))
        disk.move(layout.document, layout.root / _KEPT)
        for each in (layout.staging, layout.landing):
            disk.remove(each)


def _land(store: Store, layout: Layout, document: Document, disk: Disk) -> None:
    """Commit the batches that were decided; their rows did not have their number in the files."""
    for number in sorted(int(each.name) for each in layout.landing.glob("*") if each.name.isdecimal()):
        source = layout.landing / str(number)
        for name in [*(events(each.name).name for each in source.glob("tables/events/*")), "quarantine", "duplicates"]:
            where = table(name)
            paths = sorted(source.joinpath("tables", *where.parts).glob("day=*/*.parquet"))
            target = InPlace(store, number)
            written = [each for path in paths for each in target.write(pq.read_table(path, partitioning=None), where)]
            if written:
                schema = document.schema(where).append(BATCH)
                commits.add_once(store, name, schema, written, document.id, number)
        if (source / "state").is_dir():
            disk.move(source / "state", layout.state / str(number))
        disk.remove(source)
