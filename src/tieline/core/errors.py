"""What handlers raise that is nobody's fault."""

from __future__ import annotations


class Again(Exception):
    """The packet cannot be decided yet; the connection is held, and the packet is parsed again when it is released."""
