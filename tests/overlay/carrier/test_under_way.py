"""What still waits for a link of its origin is late and not lost: nothing of it is sent twice, by whichever way."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.kits.overlay_world import World
from tieline.core.timers import Timers
from tieline.overlay.carrier.durable import Ends
from tieline.overlay.carrier.taker import Deliver
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Planned
from tieline.overlay.membership import Membership
from tieline.overlay.node import Node
from tieline.overlay.strategies.plan import Plan
from tieline.overlay.strategies.plan_tables import PlanEntry, PlanTable, PlanTables

_ORIGIN, _MIDDLE, _END = 1, 2, 3
_DIRECT, _ROUND = 1, 2
_THIN, _WIDE = 4_000.0, 125_000.0


class _Triangle:
    """An origin with a thin link to the end and wide ones around it; a plan uses both, by the first byte."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self._tables: dict[str, PlanTables] = {}
        self.world = World(Random(1), self._make)
        for number in (_ORIGIN, _MIDDLE, _END):
            self.world.start(number)
        self.world.join(_ORIGIN, _END, 0.01, _THIN)
        self.world.join(_ORIGIN, _MIDDLE, 0.01, _WIDE)
        self.world.join(_MIDDLE, _END, 0.01, _WIDE)
        self.run(2.0)
        for number in (_ORIGIN, _MIDDLE):
            self._plan(self.node(number))

    def _make(self, name: str, ends: Ends, _deliver: Deliver, timers: Timers, incarnation: int, life: int) -> Node:
        tables = self._tables[name] = PlanTables()

        def strategy(membership: Membership, counts: Counts) -> Plan:
            return Plan(membership, counts, tables)

        return Node(name, ends, self._take, timers, incarnation=incarnation, life=life, strategy=strategy)

    def _take(self, _origin: int, _lane: int, payloads: Sequence[bytes]) -> int:
        self.came += payloads
        return len(payloads)

    def _plan(self, node: Node) -> None:
        origin, end = node.number_of(f"b{_ORIGIN}"), node.number_of(f"b{_END}")
        hops = {_DIRECT: end, _ROUND: end if node.name == f"b{_MIDDLE}" else node.number_of(f"b{_MIDDLE}")}
        tables = self._tables[node.name]
        tables.install(PlanTable(1, [PlanEntry(origin, topic, end, hop) for topic, hop in hops.items()], ()))
        tables.use(1)
        node.carrier.sender.plan_of = lambda payload: Planned(1, payload[0])

    def node(self, number: int) -> Node:
        node = self.world.brokers[number].node
        assert node is not None
        return node

    def publish(self, payloads: Sequence[bytes], level: int) -> None:
        origin, now = self.node(_ORIGIN), self.world.clock.now
        end = frozenset({origin.number_of(f"b{_END}")})
        for payload in payloads:
            assert origin.publish((payload,), level=level, assured=True, spread=0, destinations=end, now=now)
        self.world.serve(self.world.brokers[_ORIGIN])

    def run(self, seconds: float) -> None:
        self.world.clock.run_for(seconds)

    def check_that_nothing_went_twice(self, payloads: Sequence[bytes]) -> None:
        assert sorted(self.came) == sorted(payloads)
        origin, end = self.node(_ORIGIN), self.node(_END)
        assert origin.counts.resent_by_origin == 0
        assert end.counts.suppressed == 0
        assert origin.unfinished == 0


def _messages(ways: Sequence[int], size: int) -> list[bytes]:
    return [bytes((way,)) + b"%04d" % number + bytes(size) for number, way in enumerate(ways)]


def test_what_waits_for_a_full_link_is_no_hole_where_others_came_around_it() -> None:
    """The end misses every second message for ten seconds, and asks for them all the time."""
    triangle = _Triangle()
    payloads = _messages([_ROUND, _DIRECT] * 100, 400)
    triangle.publish(payloads, 1)
    triangle.run(5.0)
    assert 0 < len(triangle.came) < 150
    assert triangle.node(_END).counts.holes_asked > 1
    triangle.run(20.0)
    assert triangle.came == payloads
    triangle.check_that_nothing_went_twice(payloads)


def test_what_waits_behind_urgent_messages_for_longer_than_a_resend_takes_is_not_sent_again() -> None:
    triangle = _Triangle()
    urgent = _messages([_DIRECT] * 300, 400)
    low = [b"\x01low" + bytes(6_000)]
    triangle.publish(urgent, 3)
    triangle.publish(low, 0)
    triangle.run(10.0)
    assert low[0] not in triangle.came
    triangle.run(50.0)
    triangle.check_that_nothing_went_twice([*urgent, *low])
