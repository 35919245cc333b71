"""Events: what messages say, as declared, and the numbers by which conditions on it are indexed."""

from __future__ import annotations

from tieline.conf.schema import Attribute, Kind
from tieline.extras import ExtraNeeded
from tieline.match.events.codes import OTHER, CodesExhausted
from tieline.match.events.event_type import EventType
from tieline.match.events.kinds import Value
from tieline.match.events.reading import Get, Reading
from tieline.match.events.registry import UNTYPED, Events

__all__ = [
    "OTHER",
    "UNTYPED",
    "Attribute",
    "CodesExhausted",
    "EventType",
    "Events",
    "ExtraNeeded",
    "Get",
    "Kind",
    "Reading",
    "Value",
]
