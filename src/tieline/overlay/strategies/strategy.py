"""The question that every strategy answers: to which neighbours a frame goes, so that it reaches a destination.

A strategy cannot lose anything: the origin keeps a message until its destination has committed it, numbers take out
what comes twice and put back in order what overtook, and no frame is sent to a broker of its own path.  So a strategy
decides how long the way is and how many copies there are, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, Protocol

from tieline.overlay.frames.frame import Data


class Strategy(Protocol):
    """Chooses links; it is made with the membership whose links it chooses among, and with what counts detours."""

    name: ClassVar[str]
    #: Whether a destination is in one copy only, so that a copy whose path ends blind has to be kept.
    is_single: ClassVar[bool]
    #: Whether it takes up stages that others have begun; where it does not, a way goes on without them.
    has_stages: ClassVar[bool]

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        """The neighbours that get a copy for a destination, none of them in ``path``; none at a blind end.

        The frame is None where somebody only asks which way most would go.
        """
        ...

    def admits(self, data: Data) -> bool:
        """Whether a frame that has come is carried on; False if this broker has carried it already.

        A strategy that goes by stages empties the path of one that begins another stage here.
        """
        ...

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        """The broker at which a copy for some destinations begins another stage of its way, with an empty path.

        0 where it has only its destinations before it, as it is with every strategy that does not go by stages.
        """
        ...
