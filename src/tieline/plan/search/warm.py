"""Compiled code made ready before anybody looks at the clock.

The first search after an installation compiles for most of a minute, every other one loads what is kept.  A budget in
seconds is for the search, so both happen before it begins.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tieline.compiling import is_compiled
from tieline.plan.instance import Instance

if TYPE_CHECKING:
    from tieline.instance_document import Role


@cache
def warm() -> None:
    """Compile or load every loop of the search, once per process, by planning a network of a few nodes.

    Loops that are plain Python are ready as they are.
    """
    if not is_compiled():
        return
    from tieline.plan.arrays import arrays
    from tieline.plan.run import Run
    from tieline.plan.search.neighbourhood import search
    from tieline.plan.search.rounds import in_rounds

    instance = arrays(few_nodes())
    search(instance, Run(iterations=20))
    in_rounds(instance, Run())


def few_nodes() -> Instance:
    """A network that is planned in no time, but not proven at once."""
    from tieline.plan.instance import Instance, Link, Node, Topic

    names = ("p", "a", "b", "c", "s", "t")
    roles: dict[str, tuple[Role, ...]] = {"p": ("publisher",), "s": ("subscriber",), "t": ("subscriber",)}
    joined = (("p", "a"), ("a", "b"), ("a", "c"), ("b", "c"), ("b", "s"), ("c", "t"))
    return Instance(
        name="warm",
        nodes=tuple(Node(id=name, roles=roles.get(name, ("broker",))) for name in names),
        links=tuple(Link(a=a, b=b, capacity=1.0 if "p" in (a, b) else 2.0, cost=1.5) for a, b in joined),
        # the publisher's link carries one of them: the search has no proof and goes on to the end
        topics=tuple(Topic(id=name, source="p", rate=1.0, subscribers=("s", "t")) for name in ("x", "y")),
    )
