"""Tieline: an MQTT broker in which urgent messages overtake bulk ones.

``tieline.Broker`` embeds a broker in a program or a test; ``tieline serve`` runs one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline import native
from tieline.version import __version__

native.check()

if TYPE_CHECKING:
    from tieline.conf.schema import Limits, Listener, Mqtt, Settings
    from tieline.net.server import Server as Broker

__all__ = ["Broker", "Limits", "Listener", "Mqtt", "Settings", "__version__"]


def __getattr__(name: str) -> object:
    """Load the broker when it is asked for: the command line and the pure layers start without it."""
    if name == "Broker":
        from tieline.net.server import Server

        return Server
    if name in __all__:
        from tieline.conf import schema

        return getattr(schema, name)
    raise AttributeError(f"module 'tieline' has no attribute {name!r}")
