"""What is to be planned, as a file: the one description of the format ``tieline-instance-1``.

The pipeline's ``traffic`` job writes such documents and the planner reads them; neither knows the other.  What makes a
document a sound instance is the reader's business: :mod:`tieline.plan.flaws`.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

FORMAT: Final = "tieline-instance-1"

Role = Literal["broker", "publisher", "subscriber"]
#: A number, or no limit: zero means zero.
Limit = float | Literal["none"]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a document may hold is what is described here, and what is as usual is left out."""


class NodeDocument(_Strict, frozen=True, kw_only=True):
    """A broker, or a client that publishes or subscribes."""

    id: str
    roles: tuple[Role, ...]
    max_connections: int | Literal["none"] = "none"
    at: tuple[float, float] | None = None


class LinkDocument(_Strict, frozen=True, kw_only=True):
    """A link, which shares its capacity between both directions."""

    a: str
    b: str
    capacity: Limit
    cost: float
    latency: float = 0.0


class TopicDocument(_Strict, frozen=True, kw_only=True):
    """What one publisher sends to one topic, and who asks for it; told apart by both."""

    id: str
    source: str
    rate: float
    subscribers: tuple[str, ...] = ()
    level: int = msgspec.field(default=0, name="class")
    max_latency: Limit = "none"
    rate_max: float | None = None
    more_sources: tuple[str, ...] = ()


class SubscriptionDocument(_Strict, frozen=True, kw_only=True):
    """A filter with wildcards: its node subscribes to every topic whose name it matches."""

    node: str
    filter: str


class InstanceDocument(_Strict, frozen=True, kw_only=True):
    """A network, what it is to carry, and what an unmet request costs."""

    format: Literal["tieline-instance-1"]
    name: str
    nodes: tuple[NodeDocument, ...]
    links: tuple[LinkDocument, ...]
    topics: tuple[TopicDocument, ...]
    unmet_cost: float | None = None
    n_max: int | Literal["none"] = "none"
    deviations: int | Literal["none"] = "none"
    subscriptions: tuple[SubscriptionDocument, ...] = ()


def rendered(document: InstanceDocument) -> bytes:
    """A document as its file, indented, so that two of them can be compared."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
