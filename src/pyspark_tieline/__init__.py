"""Spark imports every module called ``pyspark_*`` and registers what it calls ``DefaultSource``: format("tieline")."""

from tieline.pipeline.source.format import TielineSource as DefaultSource

__all__ = ["DefaultSource"]
