"""What is wrong with a digest that somebody sent."""

from __future__ import annotations


class BadDigest(ValueError):
    """Bytes that are no digest."""
