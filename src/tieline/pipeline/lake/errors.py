"""What a lake refuses, each with a sentence for people."""

from __future__ import annotations


class LakeError(Exception):
    """Something about a lake is not as it must be."""


class NotALake(LakeError):
    """A directory holds no lake, or one of another version."""


class Foreign(LakeError):
    """A batch comes from a query that has not filled this lake."""


class Changed(LakeError):
    """An event type is declared otherwise than the files that exist."""
