"""An order of your own for what waits: inside a level, the smallest message goes first.

A policy is a key by which flows (one publisher, one topic, one QoS) are ranked by their first message; the order inside
a flow, drops and the in-flight window are not its business.  A program that embeds the broker adds its policy to the
table and names it in its settings.  It has to run on plain Python: compiled classes have no children.

It prints::

    fifo: firmware picture reading
    smallest: reading picture firmware
    a broker that uses it: smallest
"""

import asyncio
from typing import TypeVar

import tieline
from tieline.conf.schema import Priority
from tieline.sched.policies import POLICIES, make
from tieline.sched.policy import Ranked, WindowState
from tieline.sched.waiting import Flow, Key, Waiting

E = TypeVar("E")


class Smallest(Ranked[E]):
    """The higher level first; inside it the flow whose next message is the smallest, then the older one."""

    name = "smallest"

    def key(self, flow: Flow[E]) -> Key:
        """It is asked again whenever the first message of a flow changes, or its level."""
        return (-flow.level, flow.head.size, flow.head.order)


def order_of(name: str) -> str:
    policy = make(name)
    for number, (message, size) in enumerate([("firmware", 90_000), ("picture", 8_000), ("reading", 60)]):
        policy.push(Waiting(message, order=number, level=1, since=0.0, size=size, flow=message), 0.0)
    left = []
    while (waiting := policy.pop(0.0, WindowState.OPEN)) is not None:
        left.append(waiting.entry)
    return " ".join(left)


async def main() -> None:
    POLICIES[Smallest.name] = Smallest
    for name in ("fifo", "smallest"):
        print(f"{name}: {order_of(name)}")
    settings = tieline.Settings(priority=Priority(policy="smallest"))  # type: ignore[arg-type]  # a file may name only ours
    async with tieline.Broker(settings, listen=["tcp://127.0.0.1:0"]) as broker:
        print("a broker that uses it:", broker.settings.priority.policy)


asyncio.run(main())
