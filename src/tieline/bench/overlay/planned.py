"""What a plan does for twelve brokers on thin links: before it and after it, while it changes, and when a link dies."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.job import Failure, Metrics
from tieline.bench.load.packets import publish
from tieline.bench.overlay.backbone import CAPACITY, EXPIRY_S, Net, running, size_of
from tieline.bench.overlay.network import JoinedTieline, Network, cycle
from tieline.bench.timed.nodes import clock
from tieline.bench.timed.packets import Tally, quantile_of

if TYPE_CHECKING:
    from tieline.plan.in_force import InForce
    from tieline.plan.instance import Instance, Topic

#: For how long brokers count for a plan, and a plan is looked for.
_WATCHED_S: Final = "6"
_SEARCH_S: Final = "3"
#: Until what was published has arrived, where it fits; and until full links have got rid of what waits for them.
_DRAIN_S: Final = 20.0
#: How long is waited for messages after a link has died.
_CUT_S: Final = 12.0
#: The same on a link of this machine; between two messages there; and for a command.
_LAN_S: Final = 4.0
_TICK_S: Final = 0.02
_COMMAND_S: Final = 120.0
#: Between two plans.
_PAUSE_S: Final = 0.5


#: A link by the names of its brokers, the lesser first.
Ends = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run, by the wall clock."""

    begin_ns: int
    end_ns: int

    def of(self, tally: Tally) -> Tally:
        """What was sent within it, by numbers of its own, and whenever that arrived."""
        numbers = [number for number, sent in enumerate(tally.sent) if self.begin_ns <= sent < self.end_ns]
        first = numbers[0] if numbers else 0
        arrived = {number - first: tally.arrived[number] for number in numbers if number in tally.arrived}
        return Tally([tally.sent[number] for number in numbers], arrived)


class Planned:
    """What was measured and planned of a network, in its files."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._instance = net.directory / "net.json"
        self._plan = net.directory / "net.plan.json"
        self._other = net.directory / "other.plan.json"

    def make(self) -> None:
        """Measure what goes on, and plan for it; nothing is applied, and what waits leaves the links meanwhile."""
        net = self._net
        net.ask("plan", "import", "running", "--broker", f"b0={net.at}", "--seconds", _WATCHED_S, "--out",
                str(self._instance))  # fmt: skip
        net.hush()
        net.ask("plan", "solve", str(self._instance), "--seconds", _SEARCH_S, "--json", str(self._plan))

    def make_other(self) -> None:
        """A second plan for the same, by other ways: what links cost is drawn by lot."""
        from tieline.plan import plan as plans
        from tieline.plan.certify import certified_routes
        from tieline.plan.reading import document
        from tieline.plan.solve import solve

        chance, instance = random.Random(5), self.instance()
        links = (msgspec.structs.replace(link, cost=link.cost * chance.uniform(1, 9)) for link in instance.links)
        drawn = msgspec.structs.replace(instance, links=tuple(links))
        found = solve(drawn, seconds=float(_SEARCH_S))
        same = certified_routes(document.read(self._instance), found.routes, method="drawn", bound=0.0, seconds=0.0)
        plans.write(same, self._other)

    def apply(self, *, other: bool = False) -> float:
        """Let the network go by one of both; seconds until it does."""
        began = clock()
        plan = self._other if other else self._plan
        self._net.ask("plan", "apply", str(self._instance), str(plan), "--socket", str(self._net.at))
        return clock() - began

    def instance(self) -> Instance:
        """The network and its traffic, as brokers have measured them."""
        from tieline.plan.reading import document

        return document.read(self._instance)

    def ways(self, by: Literal["path", "plan", "other"]) -> InForce:
        """Where everything goes by one of both plans, or by the shortest ways."""
        from tieline.plan import plan as plans
        from tieline.plan.in_force import InForce, homes
        from tieline.plan.tables import parts

        instance = self.instance()
        file = {"plan": self._plan, "other": self._other}.get(by)
        told = {} if file is None else parts(instance, plans.read(file), is_paced=True)
        return InForce(instance, homes(instance), told)


def loads_of(ways: InForce, *, in_messages: bool = False) -> dict[Ends, float]:
    """By link between brokers, the bytes or the messages that the ways put on it in a second."""
    from tieline.plan.adapt.deviation import loads

    if in_messages:
        ways.instance = msgspec.structs.replace(ways.instance, topics=tuple(map(_in_messages, ways.instance.topics)))
    return loads(ways)


def _in_messages(topic: Topic) -> Topic:
    from tieline.overlay.plans import FRAMED

    return msgspec.structs.replace(topic, rate=topic.rate / (size_of(topic.id) + FRAMED))


def before_and_after(seconds: float) -> tuple[Metrics, Metrics]:
    """The same traffic by the shortest ways, and by the plan that was made of what brokers have measured meanwhile.

    The plan is applied while everything goes on.  Then what waits for full links is let through, so that what is seen
    afterwards is the plan and not what was left over.
    """
    with running() as net:
        planned = Planned(net)
        net.publish()
        net.timetable.run(clock() + 3.0)
        by_path, seen_by_path = _observe(net, seconds)
        planned.make()
        net.timetable.run(clock() + _DRAIN_S)
        net.publish()
        planned.apply()
        net.hush()
        net.timetable.run(clock() + _DRAIN_S)
        net.publish()
        net.timetable.run(clock() + 3.0)
        by_plan, seen_by_plan = _observe(net, seconds)
        net.hush()
        net.timetable.run(clock() + EXPIRY_S)
        found = []
        for span, seen, ways in (
            (by_path, seen_by_path, planned.ways("path")),
            (by_plan, seen_by_plan, planned.ways("plan")),
        ):
            asked = loads_of(ways)
            apart = _apart(seen, loads_of(ways, in_messages=True))
            fullest = max(asked.values()) / (CAPACITY / 8)
            found.append({**_arrivals(net, span, seconds), "fullest": fullest, "off_plan": apart})
        return found[0], found[1]


def _observe(net: Net, seconds: float) -> tuple[RunPart, dict[Ends, float]]:
    """Let time pass; the messages that links have carried in a second meanwhile."""
    began, before = clock(), net.links()
    first = time.time_ns()
    net.timetable.run(clock() + seconds)
    span = RunPart(first, time.time_ns())
    ended, after = clock(), net.links()
    return span, {ends: (count - before.get(ends, 0.0)) / (ended - began) for ends, count in after.items()}


def _arrivals(net: Net, span: RunPart, seconds: float) -> Metrics:
    bulk = [span.of(tally) for topic, tally in net.tallies.items() if "bulk" in topic]
    urgent = [span.of(tally) for topic, tally in net.tallies.items() if "urgent" in topic]
    waits = [wait for tally in urgent for wait in tally.waits_s(seconds)]
    return {
        "urgent_p50_ms": quantile_of(waits, 0.5) * 1e3,
        "urgent_p99_ms": quantile_of(waits, 0.99) * 1e3,
        "bulk_p50_ms": quantile_of([wait for tally in bulk for wait in tally.waits_s(seconds)], 0.5) * 1e3,
        "delivered": sum(len(tally.arrived) for tally in bulk) / max(1, sum(len(tally.sent) for tally in bulk)),
    }


def _apart(seen: dict[Ends, float], asked: dict[Ends, float]) -> float:
    """How far what links have carried is from what they were to carry: the sum of all differences, as a share."""
    return sum(abs(seen.get(ends, 0.0) - load) for ends, load in asked.items()) / sum(asked.values())


def replans(count: int) -> Metrics:
    """Plans in turns under load, of which nothing may be lost or doubled: every message has QoS 1."""
    from tieline.plan.in_force import moves

    with running() as net:
        planned = Planned(net)
        net.publish()
        net.timetable.run(clock() + 2.0)
        planned.make()
        planned.make_other()
        planned.apply()
        net.timetable.run(clock() + _DRAIN_S)
        begin = time.time_ns()
        net.publish(qos=1)
        took = []
        for number in range(count):
            took.append(planned.apply(other=number % 2 == 0))
            net.timetable.run(clock() + _PAUSE_S)
        net.hush()
        span = RunPart(begin, time.time_ns())
        net.timetable.run(clock() + _DRAIN_S)
        tallies = [span.of(tally) for tally in net.tallies.values()]
        return {
            "plans": float(count),
            "published": float(sum(len(tally.sent) for tally in tallies)),
            "lost": float(sum(tally.lost for tally in tallies)),
            "doubled": float(sum(tally.duplicates for tally in net.tallies.values())),
            "disordered": float(sum(tally.disordered for tally in net.tallies.values())),
            "moved": float(len(moves(planned.ways("plan"), planned.ways("other")))),
            "apply_s": max(took),
        }


def silent_link() -> Metrics:
    """The fullest link carries nothing any more, and nobody says so: how long its flows stand still, and a new plan."""
    with running() as net:
        planned = Planned(net)
        net.publish()
        net.timetable.run(clock() + 2.0)
        planned.make()
        planned.apply()
        net.timetable.run(clock() + _DRAIN_S)
        net.publish()
        net.timetable.run(clock() + 3.0)
        ways = planned.ways("plan")
        loads = loads_of(ways)
        ends = max(loads, key=lambda each: (loads[each], each))
        over = {
            flow.topic for flow, way in ways.ways.items() if any(tuple(sorted(hop)) == ends for hop in pairwise(way))
        }
        net.network.silence(*(int(name.removeprefix("b")) for name in ends))
        cut = time.time_ns()
        net.timetable.run(clock() + _CUT_S)
        looks = net.ask("plan", "watch", "--socket", str(net.at), "--every", "3", "--times", "1", "--json")
        look = json.loads(looks.splitlines()[-1])
        if look["state"] != "applied":
            raise Failure(f"no new plan for a network without a link: {look['verdict']}")
        return {
            "gap_s": max(longest_gap_s(net.tallies[topic], cut, _CUT_S) for topic in over),
            "flows": float(len(over)),
            "replan_s": float(look["took_s"]),
            "search_s": float(look["seconds"]),
        }


def dead_lan_link(how: Literal["reset", "silent"]) -> Metrics:
    """A planned link of three brokers on this machine dies: how long the flow stands still that goes over it."""
    with Network(JoinedTieline(), 3, cycle(3), counts=True) as network, tempfile.TemporaryDirectory() as made:
        at = Path(made)
        with (
            clients(network.endpoints[0], ["lan-sub"]) as (receiver,),
            clients(network.endpoints[1], ["lan-pub"]) as (sender,),
        ):
            subscribe(receiver, ["lan/flow"])
            ticks = Ticks(sender, receiver)
            socket_ = network.instances[0].directory / "tieline.sock"
            net, plan = at / "net.json", at / "net.plan.json"
            ticks.during("plan", "import", "running", "--broker", f"b0={socket_}", "--seconds", "1", "--out", str(net))
            ticks.during("plan", "solve", str(net), "--seconds", "1", "--json", str(plan))
            ticks.during("plan", "apply", str(net), str(plan), "--socket", str(socket_))
            relay = network.relays[0]  # that of the link from the second broker to the first
            began = clock()
            relay.cut() if how == "reset" else relay.silence()
            ticks.run(_LAN_S)
            times = [began, *(when for when in ticks.heard if when > began), clock()]
            return {"gap_s": max(later - earlier for earlier, later in pairwise(times)), "flows": 1.0}


class Ticks:
    """One message every 20 ms, and when each was heard."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self._sender, self._receiver = sender, receiver
        receiver.settimeout(_TICK_S)
        self.heard: list[float] = []

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Go on for a while."""
        end = clock() + seconds
        while clock() < end and not is_over():
            due = clock() + _TICK_S
            self._sender.sendall(publish("lan/flow", b"tick"))
            while (left := due - clock()) > 0:
                self._receiver.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    if self._receiver.recv(65_536):
                        self.heard.append(clock())

    def during(self, *words: str) -> None:
        """Go on while ``tieline WORDS`` runs."""
        command = [sys.executable, "-m", "tieline", *words]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:  # fmt: skip
            self.run(_COMMAND_S, lambda: process.poll() is not None)
            if process.poll() != 0:
                process.kill()
                raise Failure(f"`tieline {' '.join(words)}`: {process.communicate()[0].strip()[-400:]}")


def longest_gap_s(tally: Tally, since_ns: int, seconds: float) -> float:
    """The longest time without an arrival, from a moment on until so many seconds later."""
    end = since_ns + round(seconds * 1e9)
    times = [since_ns, *sorted(when for when in tally.arrived.values() if since_ns < when < end), end]
    return max(later - earlier for earlier, later in pairwise(times)) / 1e9
