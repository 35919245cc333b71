"""Records become rows: the broker's own reading of a message, for whole Arrow batches."""

from __future__ import annotations

from tieline.pipeline.decode.batch import Decoded, Decoder

__all__ = ["Decoded", "Decoder"]
