"""Spark imports every module called ``pyspark_*`` and registers what it calls ``DefaultSource``: format("mqtt")."""

from tieline.pipeline.foreign.format import MqttSource as DefaultSource

__all__ = ["DefaultSource"]
