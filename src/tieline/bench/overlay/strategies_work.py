"""What is asked for and published where running brokers are compared by strategy: the ring paper's workload, and ours.

Conditions are the boxes of the simulated rings (:mod:`tieline.sim.ring.workload`), written as clients write them.  In
ours a broker wants some topics whatever they say, too, and 4.5 % of all publications by both together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from tieline.bench.load import packets
from tieline.match.box import Box
from tieline.sim.ring import workload

PAYLOAD: Final = 100
_ATTRIBUTES: Final = ("x", "y")
#: Topics of ours, and how many of them a broker wants whole: 2 % of all publications.
_SITES: Final = 200
_WHOLE: Final = 4
_ORDERS: Final = {"paper": workload.PAPER_ORDER, "site": 6}

#: Both event types, as a configuration has them.
EVENT_TYPES: Final = "".join(
    f'[event.{name}]\ntopic = "{name}/+"\norder = {order}\n'
    + "".join(f'[[event.{name}.attributes]]\nname = "{each}"\nbounds = [0.0, 1.0]\n' for each in _ATTRIBUTES)
    for name, order in _ORDERS.items()
)


class Published(NamedTuple):
    """A publication, and the broker that it is given to."""

    number: int
    source: int
    topic: str
    point: tuple[float, ...]

    @property
    def packet(self) -> bytes:
        """As a client sends it, with its number in front."""
        said = json.dumps({"number": self.number, **dict(zip(_ATTRIBUTES, self.point, strict=True)), "rest": ""})
        rest = "." * (PAYLOAD - len(said))
        return packets.publish(self.topic, f'{said[:-2]}{rest}"}}'.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one broker's clients ask for."""

    #: Topics that are wanted whatever they say; and what is wanted of all topics below ``root``.
    topics: frozenset[str]
    root: str
    boxes: Sequence[Box]

    @property
    def filters(self) -> list[str]:
        """Filters of subscriptions, with their conditions."""
        return [*sorted(self.topics), *(f"{self.root}/+?{_condition(box)}" for box in self.boxes)]

    def wants(self, published: Published) -> bool:
        """Whether a publication is to be delivered there."""
        return published.topic in self.topics or any(box.contains(published.point) for box in self.boxes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What all brokers ask for, and the topics of what is published."""

    asked: Sequence[Asked]
    topics: Sequence[str]

    def events(self, count: int) -> list[Published]:
        """Publications anywhere in the space, each at a broker that is drawn."""
        random = Random(count)
        return [
            Published(
                number,
                random.randrange(len(self.asked)),
                random.choice(self.topics),
                tuple(random.random() for _ in _ATTRIBUTES),
            )
            for number in range(count)
        ]

    def receivers(self, published: Published) -> list[int]:
        """The brokers whose clients are to get a publication, its own included; by looking at all."""
        return [number for number, each in enumerate(self.asked) if each.wants(published)]


def paper(brokers: int) -> Work:
    """The ring paper's: 50 random boxes for each broker, in a space of the third order."""
    boxes = _boxes(workload.paper(brokers, Random(brokers)))
    return Work(asked=[Asked(topics=frozenset(), root="paper", boxes=each) for each in boxes], topics=["paper/reading"])


def ours(brokers: int) -> Work:
    """Topics and boxes of which each broker wants 4.5 % together."""
    random = Random(brokers)
    topics = [f"site/{number:03d}" for number in range(_SITES)]
    rest = 1 - (1 - workload.SHARE) / (1 - _WHOLE / _SITES)
    boxes = _boxes(workload.sparse(brokers, random, share=rest))
    return Work(
        asked=[Asked(topics=frozenset(random.sample(topics, _WHOLE)), root="site", boxes=each) for each in boxes],
        topics=topics,
    )


#: By name; and what they are called.
WORKS: Final[Mapping[str, Callable[[int], Work]]] = {"paper": paper, "ours": ours}
TITLES: Final = {"paper": "the ring paper's workload", "ours": f"{100 * workload.SHARE:g} % interest"}


def _boxes(work: workload.Workload) -> list[list[Box]]:
    return [[one.box for one in subscriptions if one.box is not None] for subscriptions in work.subscriptions]


def _condition(box: Box) -> str:
    sides = zip(box.lo, _ATTRIBUTES, box.hi, strict=True)
    return " and ".join(f"{low!r}<={name}<={high!r}" for low, name, high in sides)
