"""What Sparkplug devices said when they were born: the names behind aliases, and the data types of metrics.

A birth certificate names every metric with its data type and may give it a number, the alias; later messages carry only
the number.  The names belong to one edge node or device, told apart by the topic:
``spBv1.0/group/NBIRTH/edge`` and ``spBv1.0/group/DBIRTH/edge/device``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tieline.match.events.sparkplug_schema import metrics

_NAMESPACE: Final = "spBv1.0"
_BIRTHS: Final = frozenset({"NBIRTH", "DBIRTH"})

#: Edge nodes and devices remembered; the one unused for longest is forgotten first.
MOST_DEVICES: Final = 10_000
#: Characters of all names remembered: long names forget devices earlier.
MOST_CHARACTERS: Final = 16_777_216


@dataclass(slots=True)
class Birth:
    """The metrics of one edge node or device."""

    names: dict[int, str] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)

    @property
    def characters(self) -> int:
        return sum(map(len, self.types))


_UNBORN: Final = Birth()


class Births:
    """Birth certificates by edge node or device."""

    __slots__ = ("_characters", "_is_looking", "_known", "_most")

    def __init__(self, most: int = MOST_DEVICES) -> None:
        self._known: OrderedDict[tuple[str, ...], Birth] = OrderedDict()
        #: The sum over all that are known.
        self._characters = 0
        self._most = most
        #: Somebody only asks what a message would say.
        self._is_looking = False

    @contextmanager
    def looking(self) -> Iterator[None]:
        """While this lasts, nothing is learned and nothing counts as used."""
        self._is_looking = True
        try:
            yield
        finally:
            self._is_looking = False

    def __len__(self) -> int:
        return len(self._known)

    @staticmethod
    def is_birth(topic: str) -> bool:
        """Whether messages of a topic are birth certificates."""
        levels = topic.split("/")
        return len(levels) in (4, 5) and levels[0] == _NAMESPACE and levels[2] in _BIRTHS

    def of(self, topic: str) -> Birth:
        """What is known about the sender of a topic's messages."""
        key = _sender(topic)
        birth = self._known.get(key)
        if birth is None:
            return _UNBORN
        if not self._is_looking:
            self._known.move_to_end(key)
        return birth

    def learn(self, topic: str, payload: bytes) -> None:
        """Remember a birth certificate; other messages are ignored."""
        if not self.is_birth(topic):
            return
        found = metrics(payload)
        if found is not None:
            self.record(topic, found)

    def record(self, topic: str, born: Iterable[Any]) -> None:
        """Remember the metrics of a birth certificate in place of what the sender said before."""
        if self._is_looking:
            return
        birth = Birth()
        for metric in born:
            if metric.name:
                birth.types[metric.name] = metric.datatype
                if metric.HasField("alias"):
                    birth.names[metric.alias] = metric.name
        key = _sender(topic)
        self._forget(key)
        self._known[key] = birth
        self._characters += birth.characters
        while len(self._known) > self._most or self._characters > MOST_CHARACTERS:
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[str, ...]) -> None:
        birth = self._known.pop(key, None)
        if birth is not None:
            self._characters -= birth.characters


def _sender(topic: str) -> tuple[str, ...]:
    """Group and edge node, and the device if there is one."""
    levels = topic.split("/")
    return (*levels[1:2], *levels[3:5])
