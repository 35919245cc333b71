"""A hundred thousand content subscriptions laid out over topics, and events of which each is wanted exactly once.

Every shape has the same clients, boxes and events; what differs is the filters that the conditions hang on.  Its plain
counterpart reaches the same subscriber with the same payload by an ordinary filter without a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from tieline.bench.load.job import Failure
from tieline.bench.load.packets import Stream, layout_of

if TYPE_CHECKING:
    from tieline.bench.match.workload import Floats

#: What events say: name, least and greatest value.  All numbers of an attribute have as many digits.
ATTRIBUTES: Final = (("voltage", 180.0, 280.0), ("frequency", 45.0, 55.0), ("power", 1000.0, 9000.0))
_DECIMALS: Final = 6
#: Topics of events where topics do not tell subscriptions apart.
SITES: Final = 100
#: The mean number of boxes that contain a random event; those that are in exactly one are taken.
_DENSITY: Final = 1.0
_SEED: Final = 40
_GROUP: Final = 256

EVENT_TYPE: Final = '[event.pcc]\ntopic = "grid/+/pcc"\n' + "".join(
    f'[[event.pcc.attributes]]\nname = "{name}"\nbounds = [{low}, {high}]\n' for name, low, high in ATTRIBUTES
)

Spread = Literal["one filter", "distinct filters", "overlapping wildcards"]
SPREADS: Final[tuple[Spread, ...]] = ("one filter", "distinct filters", "overlapping wildcards")
#: All of them match every event, none matches the topic of a plain flow beside them.
WILDCARDS: Final = ("grid/+/pcc", "grid/#", "+/+/pcc", "grid/+/+", "+/+/+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many subscriptions, of how many clients, over which filters."""

    spread: Spread
    subscriptions: int
    clients: int
    events: int

    @property
    def conditions_each(self) -> int:
        """How many conditions hang on one filter."""
        filters = {"one filter": 1, "distinct filters": self.subscriptions, "overlapping wildcards": len(WILDCARDS)}
        return self.subscriptions // filters[self.spread]

    def content_filters(self) -> list[list[str]]:
        """The filters of each client, with conditions."""
        boxes = _boxes(self.subscriptions)
        return self._by_client(f"{self._filter(number)}?{text}" for number, text in enumerate(boxes.texts))

    def plain_filters(self) -> list[list[str]]:
        """The filters of each client in the counterpart: its own topic, or all of its topics."""
        if self.spread == "distinct filters":
            return self._by_client(_topic(number) for number in range(self.subscriptions))
        return [[_topic(client)] for client in range(self.clients)]

    def owners(self) -> list[int]:
        """The client that gets each event."""
        return [wanted % self.clients for wanted in self._wanted()]

    def content_stream(self) -> Stream:
        """The events under topics that say nothing about who wants them, except where every filter is another topic."""
        if self.spread == "distinct filters":
            topics = [_topic(wanted) for wanted in self._wanted()]
        else:
            topics = [_topic(number % SITES) for number in range(self.events)]
        return _stream(topics, self._payloads())

    def plain_stream(self) -> Stream:
        """The same payloads in the same order, each under the topic of its subscriber."""
        if self.spread == "distinct filters":
            return self.content_stream()
        return _stream([_topic(owner) for owner in self.owners()], self._payloads())

    def _filter(self, number: int) -> str:
        if self.spread == "distinct filters":
            return _topic(number)
        return WILDCARDS[number // self.clients % len(WILDCARDS) if self.spread == "overlapping wildcards" else 0]

    def _by_client(self, filters: Iterator[str]) -> list[list[str]]:
        """The subscriptions are dealt out."""
        each: list[list[str]] = [[] for _ in range(self.clients)]
        for number, filter_ in enumerate(filters):
            each[number % self.clients].append(filter_)
        return each

    def _wanted(self) -> Sequence[int]:
        return _events(self.subscriptions, self.events).wanted

    def _payloads(self) -> Sequence[bytes]:
        return _events(self.subscriptions, self.events).payloads


def _topic(number: int) -> str:
    return f"grid/s{number:06d}/pcc"


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Conditions as they are written, and what they mean."""

    texts: Sequence[str]
    lo: Floats
    hi: Floats


@dataclass(frozen=True, slots=True)
class _Events:
    """Payloads, and for each the one subscription whose condition it meets."""

    payloads: Sequence[bytes]
    wanted: Sequence[int]


@lru_cache(maxsize=1)
def _boxes(count: int) -> _Boxes:
    import numpy as np

    rng = np.random.default_rng(_SEED)
    dimensions = len(ATTRIBUTES)
    least, range_ = _least_and_range()
    # an interval that leaves the bounds at one side ends there: the mean share of a side is less than its width
    side = (_DENSITY / count) ** (1 / dimensions)
    centres = rng.random((count, dimensions))
    widths = side * rng.lognormal(0.0, 0.5, (count, dimensions))
    # what counts is the text: the numbers are those that anybody reads in it
    lo = np.round(least + range_ * (centres - widths / 2).clip(0.0, 1.0), _DECIMALS)
    hi = np.round(least + range_ * (centres + widths / 2).clip(0.0, 1.0), _DECIMALS)
    texts = [
        " and ".join(
            f"{low!r}<={name}<={high!r}" for (name, _, _), low, high in zip(ATTRIBUTES, lows, highs, strict=True)
        )
        for lows, highs in zip(lo.tolist(), hi.tolist(), strict=True)
    ]
    return _Boxes(texts, lo, hi)


@lru_cache(maxsize=1)
def _events(subscriptions: int, count: int) -> _Events:
    """Events in random boxes that are in no other box, in random order."""
    import numpy as np

    rng = np.random.default_rng(_SEED + 1)
    boxes = _boxes(subscriptions)
    payloads: list[bytes] = []
    wanted: list[int] = []
    for _ in range(100):
        chosen = rng.integers(subscriptions, size=count)
        low, high = boxes.lo[chosen], boxes.hi[chosen]
        points = np.round(low + (high - low) * rng.random(low.shape), _DECIMALS)
        for number, found in _all_containing(boxes, points):
            if len(found) == 1:
                payloads.append(_payload(points[number].tolist()))
                wanted.append(found[0])
        if len(payloads) >= count:
            return _Events(payloads[:count], wanted[:count])
    raise Failure(f"no {count} events that exactly one of {subscriptions} boxes contains")


def _all_containing(boxes: _Boxes, points: Floats) -> Iterator[tuple[int, list[int]]]:
    """For each point, in no order, the boxes that contain it; brute force, over boxes anywhere near."""
    import numpy as np

    order = np.argsort(points[:, 0], kind="stable")
    for start in range(0, len(order), _GROUP):
        group = order[start : start + _GROUP]
        first, last = points[group[0], 0], points[group[-1], 0]
        near = np.flatnonzero((boxes.lo[:, 0] <= last) & (first <= boxes.hi[:, 0]))
        lo, hi = boxes.lo[near], boxes.hi[near]
        for number in group.tolist():
            inside = ((lo <= points[number]) & (points[number] <= hi)).all(axis=1)
            yield number, near[inside].tolist()


def _payload(values: list[float]) -> bytes:
    """JSON of one length for all events, because receivers count bytes."""
    numbers = (f'"{name}":{value:.{_DECIMALS}f}' for (name, _, _), value in zip(ATTRIBUTES, values, strict=True))
    return f"{{{','.join(numbers)}}}".encode()


def _stream(topics: Sequence[str], payloads: Sequence[bytes]) -> Stream:
    layout = layout_of(topic_bytes=len(topics[0]), payload=len(payloads[0]), qos=0, version=4)
    packets = (layout.head + topic.encode() + payload for topic, payload in zip(topics, payloads, strict=True))
    return Stream(data=memoryview(b"".join(packets)), count=len(payloads), topics=topics, layout=layout)


def _least_and_range() -> tuple[Floats, Floats]:
    import numpy as np

    least = np.array([low for _, low, _ in ATTRIBUTES])
    return least, np.array([high for _, _, high in ATTRIBUTES]) - least
