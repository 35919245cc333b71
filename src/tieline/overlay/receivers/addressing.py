"""The groups that an item goes to other brokers for, gathered until all of its destinations are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tieline.core.receiver import Share
from tieline.overlay.frames.naming import MOST_GROUPS, Address, put_addresses


class Handing(NamedTuple):
    """What a broker knows of a message that it may have to hand on: who was picked for it, this broker included."""

    tried: tuple[str, ...] = ()
    is_asked: bool = False


_NOBODY: Final = Handing()


class Addressing:
    """Gathers the groups of one item."""

    __slots__ = ("_groups", "_handing", "handing")

    def __init__(self) -> None:
        #: By destination, the groups that it was picked for.
        self._groups: dict[int, list[Share]] = {}
        #: Who had it before those.
        self._handing = _NOBODY
        #: Of the message of another broker that is being delivered.
        self.handing = _NOBODY

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, number: int, share: Share, *, is_handed_on: bool = False, is_asked: bool = False) -> None:
        """A broker was picked for a group; with ``is_handed_on`` because this one had been, with members or not."""
        groups = self._groups.get(number)
        if groups is None:
            self._groups[number] = [share]
        else:
            groups.append(share)
        if is_handed_on:
            tried, was_asked = self.handing
            self._handing = Handing(tried, was_asked or is_asked)

    def take(self, plain: list[int], qos: int, names: Mapping[int, str]) -> Iterator[tuple[list[int], bytes]]:
        """Destinations with what stands in front of the parcel for them; ``plain`` want it outside groups too.

        All go together, unless somebody was picked for more groups than one address may name.
        """
        groups, handing = self._groups, self._handing
        self._groups, self._handing = {}, _NOBODY
        is_first = True
        while groups:
            to = [*plain] if is_first else []
            addresses = {}
            for number, shares in groups.items():
                is_plain = number in to
                if not is_plain:
                    to.append(number)
                named = tuple(shares[:MOST_GROUPS])
                addresses[names[number]] = Address(is_plain, named, handing.tried, handing.is_asked)
            if len(to) == 1:
                addresses = dict(zip([""], addresses.values(), strict=True))  # whoever gets it
            yield to, put_addresses(addresses, qos)
            groups = {number: shares[MOST_GROUPS:] for number, shares in groups.items() if len(shares) > MOST_GROUPS}
            is_first = False
