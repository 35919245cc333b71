"""Brokers in network namespaces of their own, joined by cables on which thin links are shaped in both directions."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieline.bench.overlay.network import Edges, Member
from tieline.bench.timed.link import Namespace, Shape, join, namespaces, shape_interface, silence_interface

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

    def silence(self, one: int, other: int) -> None:
        """Let nothing pass a link any more, without a word to anybody."""
        for near, far in ((one, other), (other, one)):
            silence_interface(self.spaces[near], f"to{far}")


@contextlib.contextmanager
def thin_network(
    brokers: int, edges: Edges, configuration: str, *, shape: Shape, link: str = ""
) -> Iterator[ThinNetwork]:
    """So many brokers of one configuration, and links of one shape; ``link`` is what the settings say of each.

    The first broker of an edge listens for the second one.  Everything is gone in the end.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tieline-bench-") as made,
        namespaces(brokers) as spaces,
    ):
        directory = Path(made)
        key = directory / "overlay.key"
        key.write_text("a secret of the benchmark alone")
        settings = [["[overlay]", f'key_file = "{key}"'] for _ in spaces]
        for space in spaces:
            space.ip("link", "set", "lo", "up")
        for number, (a, b) in enumerate(edges):
            near, far = _NEAR.format(_FIRST + number), _FAR.format(_FIRST + number)
            join(spaces[a], f"to{b}", f"{near}/30", spaces[b], f"to{a}", f"{far}/30")
            shape_interface(spaces[a], f"to{b}", shape)
            shape_interface(spaces[b], f"to{a}", shape)
            settings[a] += ["[[listener]]", f'url = "peer://{near}:{_PORT}"', "[[peer]]", f'name = "b{b}"', link]
            settings[b] += ["[[peer]]", f'url = "peer://{near}:{_PORT}"', f'name = "b{a}"', link]
        members = [Member(number, "\n".join([*lines, configuration])) for number, lines in enumerate(settings)]
        yield ThinNetwork(directory=directory, spaces=spaces, members=members)
