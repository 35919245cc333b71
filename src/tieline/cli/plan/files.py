"""Instances and plans as the commands get them: from files, with one sentence for whatever is wrong.

Links, topics and requests have names on the command line; what exists decides what is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from tieline.cli.trouble import FAILED, MISUSED, Trouble
from tieline.extras import ExtraNeeded, library_in, remedy

if TYPE_CHECKING:
    from tieline.plan.instance import Instance, Link, Topic
    from tieline.plan.plan import Plan

T = TypeVar("T")

InstanceFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The instance: .json, SNDlib (.txt), GraphML (.graphml), or topohub:NAME.",
        show_default=False,
    ),
]
PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan, as `tieline plan solve --json` writes it.", show_default=False)
]


@contextmanager
def sentences() -> Iterator[None]:
    """Whatever the planner refuses is one sentence and an exit code."""
    from tieline.plan.flaws import Flawed
    from tieline.plan.proof import Refuted

    try:
        yield
    except Flawed as flaw:
        raise Trouble(str(flaw), code=MISUSED) from None
    except Refuted as violation:
        raise Trouble(f"the plan is refuted: {violation}.", code=FAILED) from None
    except ExtraNeeded as missing:
        raise Trouble(str(missing), code=FAILED) from None
    except ModuleNotFoundError as missing:
        library = library_in(missing)
        if library == "tieline":
            raise
        raise Trouble(f"{library} is not installed: {remedy('plan')}", code=FAILED) from None


def instance_in(name: str) -> Instance:
    """The instance that a user names."""
    from tieline.plan.reading.load import load

    return load(name)


def plan_in(path: Path) -> Plan:
    """The plan in a file, as it is: nothing about it is proven."""
    from tieline.plan import plan as plans

    try:
        return plans.read(path)
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror or error}", code=MISUSED) from None
    except msgspec.MsgspecError as error:
        raise Trouble(f"{path}: this is not a plan: {error}", code=MISUSED) from None


def proven_plan_in(instance: Instance, path: Path) -> Plan:
    """The plan in a file, once it has passed the proof."""
    from tieline.plan.proof import proven

    return proven(instance, plan_in(path))


def write(path: Path, content: bytes) -> None:
    """Store what a user asked for; ``-`` is standard output."""
    if str(path) == "-":
        typer.get_binary_stream("stdout").write(content)
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror or error}") from None


def instance_line(instance: Instance) -> str:
    """The size of an instance, in words."""
    return (
        f"{len(instance.nodes):,} nodes, {len(instance.links):,} links, {instance.arc_count:,} arcs, "
        f"{len(instance.topics):,} topics, {instance.request_count:,} requests"
    )


def link_named(instance: Instance, text: str) -> Link | None:
    """The link ``A-B``, in either order; None if there is none.  Names may hold hyphens of their own."""
    plain = text.replace(" ", "")
    found = [
        link
        for link in instance.links
        if plain in (f"{link.a}-{link.b}".replace(" ", ""), f"{link.b}-{link.a}".replace(" ", ""))
    ]
    return _only(found, text, [f"{link.a} - {link.b}" for link in found]) if found else None


def topic_named(instance: Instance, text: str) -> Topic:
    """The topic ``ID`` or, where several sources send under one name, ``ID@SOURCE``."""
    found = [topic for topic in instance.topics if text in (topic.id, f"{topic.id}@{topic.source}")]
    if not found:
        raise Trouble(f"there is no topic {text}.", code=MISUSED)
    return _only(found, text, [f"{topic.id}@{topic.source}" for topic in found])


def request_named(instance: Instance, text: str) -> tuple[Topic, str]:
    """The request ``TOPIC:SUBSCRIBER``; the topic as above."""
    found = [
        (topic, subscriber)
        for topic, subscriber in instance.requests()
        if text in (f"{topic.id}:{subscriber}", f"{topic.id}@{topic.source}:{subscriber}")
    ]
    if not found:
        raise Trouble(f"there is no request {text}; a request is TOPIC:SUBSCRIBER.", code=MISUSED)
    return _only(found, text, [f"{topic.id}@{topic.source}:{subscriber}" for topic, subscriber in found])


def _only(found: Sequence[T], text: str, names: Sequence[str]) -> T:
    if len(found) > 1:
        raise Trouble(f"{text} may be {' or '.join(names)}.", code=MISUSED)
    return found[0]
