"""The lake: tables of events that batches land in, each once and as a whole."""

from __future__ import annotations

from tieline.pipeline.lake.document import Document
from tieline.pipeline.lake.errors import Changed, Foreign, LakeError, NotALake
from tieline.pipeline.lake.lake import Lake
from tieline.pipeline.lake.layout import DUPLICATES, OTHER, QUARANTINE, Table
from tieline.pipeline.lake.state import State
from tieline.pipeline.lake.status import Status

__all__ = [
    "DUPLICATES",
    "OTHER",
    "QUARANTINE",
    "Changed",
    "Document",
    "Foreign",
    "Lake",
    "LakeError",
    "NotALake",
    "State",
    "Status",
    "Table",
]
