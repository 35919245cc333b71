"""Brokers in network namespaces of their own, joined by cables on which thin links are shaped in both directions."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieline.bench.overlay.network import Edges, Member
from tieline.bench.timed.delay import delaying
from tieline.bench.timed.link import Namespace, Shape, join, namespaces, one_way, shape_interface, silence_interface

#: In namespaces of their own all brokers have the same.
_PORT: Final = 7883
#: The two ends of a link, by its number: nobody outside of the namespaces sees these addresses.
_NEAR, _FAR = "10.199.{}.1", "10.199.{}.2"
_FIRST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinNetwork:
    """Brokers that have not been started yet, each with its namespace, in the order of their numbers."""

    directory: Path
    spaces: Sequence[Namespace]
    members: Sequence[Member]
    #: The address at which a broker's neighbour stands on the link between them, by both numbers.
    addresses: Mapping[tuple[int, int], str]

    def silence(self, one: int, other: int) -> None:
        """Let nothing pass a link any more, without a word to anybody."""
        for near, far in ((one, other), (other, one)):
            silence_interface(self.spaces[near], f"to{far}")

    def one_way(self, sender: int, receiver: int) -> AbstractContextManager[None]:
        """Let nothing of what a broker sends reach a neighbour meanwhile, while what that one sends does come."""
        return one_way(self.spaces[sender], self.addresses[sender, receiver])


@contextlib.contextmanager
def thin_network(
    brokers: int, edges: Edges, configuration: str, *, shape: Shape, link: str = "", delay_s: float = 0.0
) -> Iterator[ThinNetwork]:
    """So many brokers of one configuration, and links of one shape; ``link`` is what the settings say of each.

    The first broker of an edge listens for the second one.  With a delay, a relay in a namespace of its own stands on
    every link.  Everything is gone in the end.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tieline-bench-") as made,
        namespaces(brokers) as spaces,
        namespaces(len(edges) if delay_s else 0) as relays,
        contextlib.ExitStack() as stack,
    ):
        directory = Path(made)
        key = directory / "overlay.key"
        key.write_text("a secret of the benchmark alone")
        addresses: dict[tuple[int, int], str] = {}
        settings = [["[overlay]", f'key_file = "{key}"'] for _ in spaces]
        for space in spaces:
            space.ip("link", "set", "lo", "up")
        for number, (a, b) in enumerate(edges):
            near, far = _NEAR.format(_FIRST + number), _FAR.format(_FIRST + number)
            if relays:
                join(spaces[a], f"to{b}", f"{near}/30", relays[number], "near", "")
                join(spaces[b], f"to{a}", f"{far}/30", relays[number], "far", "")
                stack.enter_context(delaying(relays[number], "near", "far", delay_s))
            else:
                join(spaces[a], f"to{b}", f"{near}/30", spaces[b], f"to{a}", f"{far}/30")
            addresses[a, b], addresses[b, a] = far, near
            shape_interface(spaces[a], f"to{b}", shape)
            shape_interface(spaces[b], f"to{a}", shape)
            settings[a] += ["[[listener]]", f'url = "peer://{near}:{_PORT}"', "[[peer]]", f'name = "b{b}"', link]
            settings[b] += ["[[peer]]", f'url = "peer://{near}:{_PORT}"', f'name = "b{a}"', link]
        members = [Member(number, "\n".join([*lines, configuration])) for number, lines in enumerate(settings)]
        yield ThinNetwork(directory=directory, spaces=spaces, members=members, addresses=addresses)
