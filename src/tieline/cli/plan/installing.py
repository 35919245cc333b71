"""Plans at running brokers: what is in force there, whether a plan is true for them, and how it gets to all of them.

One joined broker is asked, and it reaches the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # Any: values of JSON

import msgspec

from tieline.cli.management import Management, shown
from tieline.cli.plan.brokers import at_once
from tieline.cli.plan.network import Passed, everybody, everywhere, net_of
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from tieline.plan.instance import Instance
    from tieline.plan.plan import Plan
    from tieline.plan.reading.backbone import Backbone
    from tieline.plan.tables import Part

#: What every broker says of its plans, by name.
Said = dict[str, dict[str, Any]]


def running_network(channel: Management, *, in_bytes: bool) -> Backbone:
    """The brokers and links as they are now; raises Trouble if there is one broker alone."""
    from tieline.plan.instance import UNLIMITED

    answer = net_of(channel)
    if answer is None:
        raise Trouble("this broker is not joined with others: there is nothing to plan.", code=MISUSED)
    return everywhere(channel, answer, capacity=UNLIMITED, in_bytes=in_bytes).backbone


def check_against(running: Backbone, instance: Instance, plan: Plan) -> None:
    """Raise Trouble if a plan is not true for the network as it is now."""
    from tieline.plan.proof import Refuted, examine
    from tieline.plan.reading.joined import as_it_is

    try:
        examine(as_it_is(instance, running), plan.routes)
    except Refuted as violation:
        raise Trouble(f"the network is not as it was planned: {shown(str(violation))}.") from None


def all_brokers(channel: Management) -> Said:
    """What all brokers in reach say of their plans."""
    answer = channel.ask("plan", all=True)
    found = everybody(answer)
    silent = answer["silent"]
    return found | dict(zip(silent, at_once(silent, lambda name: Passed(channel, name).ask("plan")), strict=True))


def parts_in_force(channel: Management, brokers: Said) -> dict[str, Part]:
    """By broker what it has of the plan by which it goes; nothing of those that go by none."""
    from tieline.overlay.plans import PlanPiece
    from tieline.plan.tables import joined

    def part_of(name: str) -> Part:
        there, pieces = Passed(channel, name), list[PlanPiece]()
        while not pieces or pieces[-1].more:
            answer = there.ask("plan", act="get", epoch=brokers[name]["epoch"], number=len(pieces))
            pieces.append(msgspec.convert(answer["piece"], PlanPiece))
        return joined(pieces)

    names = [name for name, said in brokers.items() if said["epoch"]]
    return dict(zip(names, at_once(names, part_of), strict=True))


def check_brokers(brokers: Said, parts: dict[str, Part]) -> dict[str, Part]:
    """The parts of brokers that are concerned; raises Trouble if one is missing or would not follow a plan."""
    needed = {broker: part for broker, part in parts.items() if part.ways or part.topics or broker in brokers}
    missing = sorted(broker for broker in needed if broker not in brokers)
    if missing:
        raise Trouble(f"no way leads to {', '.join(missing)}: nothing was changed.")
    for broker, said in brokers.items():
        if broker in needed and said["strategy"] not in ("path", "plan"):
            raise Trouble(f"broker {broker} goes by {said['strategy']}, and would not follow a plan.")
    return needed


def install(channel: Management, brokers: Said, parts: dict[str, Part], name: str) -> int:
    """Give every broker its part of a plan, then let all go by it; its number."""
    epoch = 1 + max((epoch for said in brokers.values() for epoch in (*said["epochs"], said["epoch"])), default=0)
    pieces = {broker: part.pieces(epoch, name) for broker, part in parts.items()}

    def put(broker: str) -> None:
        there = Passed(channel, broker)
        for piece in pieces[broker]:
            there.ask("plan", act="put", piece=msgspec.to_builtins(piece))

    at_once(pieces, put)
    use(channel, epoch, set(parts))
    return epoch


def use(channel: Management, epoch: int, brokers: set[str]) -> None:
    """All brokers go by a plan that they have; raises Trouble with the names of those that do not."""
    answer = channel.ask("plan", act="use", epoch=epoch, all=True)
    done = {answer["name"], *(name for name, said in answer["others"].items() if said.get("epoch") == epoch)}
    trouble = []
    for broker in sorted(brokers - done):
        try:
            Passed(channel, broker).ask("plan", act="use", epoch=epoch)
        except Trouble as problem:
            trouble.append(f"{broker} ({problem})")
    if trouble:
        raise Trouble(f"plan {epoch} is in force, but not at {', '.join(trouble)}")


def sums(parts: dict[str, Part]) -> str:
    """How much a plan is, in words."""
    topics, ways = (sum(len(getattr(part, what)) for part in parts.values()) for what in ("topics", "ways"))
    paced = sum(len(part.paces) for part in parts.values()) // 2
    return ", ".join(
        several(number, what) for number, what in ((topics, "topic"), (ways, "way"), (paced, "paced link"))
    )


def several(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
