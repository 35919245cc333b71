"""Events: what messages say, as declared, and the numbers by which conditions on it are indexed."""

from __future__ import annotations

from tieline.conf.schema import Attribute, AttributeKind
from tieline.extras import ExtraNeeded
from tieline.match.events.event_type import UNTYPED, Events, EventType
from tieline.match.events.kinds import OTHER, CodesExhausted, Value
from tieline.match.events.reading import Get, Reading

__all__ = [
    "OTHER",
    "UNTYPED",
    "Attribute",
    "AttributeKind",
    "CodesExhausted",
    "EventType",
    "Events",
    "ExtraNeeded",
    "Get",
    "Reading",
    "Value",
]
