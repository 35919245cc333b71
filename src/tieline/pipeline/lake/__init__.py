"""The lake: tables of events that batches land in, each once and as a whole."""

from __future__ import annotations

from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.lake import Lake
from tieline.pipeline.lake.layout import DUPLICATES, OTHER, QUARANTINE, Changed, LakeError, NotALake, Overtaken, Table
from tieline.pipeline.lake.reading import Status

__all__ = [
    "DUPLICATES",
    "OTHER",
    "QUARANTINE",
    "Changed",
    "Document",
    "Lake",
    "LakeError",
    "NotALake",
    "Overtaken",
    "State",
    "Status",
    "Table",
]
