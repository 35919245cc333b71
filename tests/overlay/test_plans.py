"""Plans at one broker: pieces become tables, what is in force survives, and what is published is known by its topic."""

from __future__ import annotations

from typing import Any

import pytest

from tieline.core.broker import Broker
from tieline.core.message import Burst, Message, Origin
from tieline.core.receiver import Share
from tieline.overlay.carrier.sender import PlanOf
from tieline.overlay.frames.frame import Planned
from tieline.overlay.frames.naming import Address, put_addresses
from tieline.overlay.frames.parcel import Writing, write_run
from tieline.overlay.joined import Joined
from tieline.overlay.plans import PlanError, PlanPiece, Plans
from tieline.overlay.strategies.plan_tables import MOST_EPOCHS, Own, PlanTable, PlanTables


class Installed:
    """Plans as a broker has them, with what it keeps of them."""

    def __init__(self, notes: dict[bytes, bytes]) -> None:
        self.notes = notes
        self.followed: PlanOf | None = None
        self._numbers: dict[str, int] = {}
        self.plans = Plans(self.number_of, self._follow, self._keep, list(notes.items()))

    def number_of(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def _follow(self, plan_of: PlanOf | None) -> None:
        self.followed = plan_of

    def _keep(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            del self.notes[key]
        else:
            self.notes[key] = value


def _piece(epoch: int, number: int = 0, *, more: bool = False, **fields: Any) -> PlanPiece:
    return PlanPiece(epoch=epoch, number=number, more=more, name="test", **fields)


WAYS = (("a", 1, "c", "b"),)
TOPICS = ((1, "grid/v", None), (2, "grid/i", "p"))


def test_a_plan_is_complete_with_its_last_piece_and_survives() -> None:
    notes: dict[bytes, bytes] = {}
    installed = Installed(notes)
    plans = installed.plans
    assert not plans.put(_piece(3, more=True, ways=WAYS, paces={"b": 500.0}))
    with pytest.raises(PlanError, match="plan 3 is not complete here"):
        plans.use(3)
    assert plans.put(_piece(3, 1, topics=TOPICS))
    assert plans.put(_piece(3, 1, topics=TOPICS))  # whoever did not hear the answer says it again
    plans.use(3)
    assert installed.followed is not None
    installed = Installed(notes)
    again = installed.plans
    assert again.tables.epoch == 3
    assert again.name == "test"
    assert again.pace("b") == 500.0
    assert again.pace("c") is None
    assert again.tables.find(b"grid/v", "anybody") == Planned(3, 1)
    assert again.tables.find(b"grid/i", "p") == Planned(3, 2)
    assert again.tables.find(b"grid/i", "q") is None
    a, c, b = map(installed.number_of, "acb")
    assert again.tables.tables[3].neighbour(a, 1, c) == b
    again.use(0)
    assert installed.followed is None
    assert Installed(notes).plans.tables.epoch == 0


def test_what_was_begun_and_not_finished_leaves_nothing() -> None:
    notes: dict[bytes, bytes] = {}
    plans = Installed(notes).plans
    plans.put(_piece(1, more=True, ways=WAYS))
    plans.put(_piece(1, 1, more=True))
    plans.put(_piece(1, ways=WAYS))  # from the beginning
    plans.use(1)
    plans.put(_piece(2, more=True, ways=WAYS))
    assert plans.put(_piece(5))
    assert {key[:9] for key in notes if len(key) > 1} == {b"G" + epoch.to_bytes(8, "big") for epoch in (1, 5)}
    assert Installed(notes).plans.tables.epoch == 1


def test_pieces_come_in_their_order() -> None:
    plans = Installed({}).plans
    with pytest.raises(PlanError, match="piece 1 of plan 4 was not expected, but piece 0"):
        plans.put(_piece(4, 1))
    plans.put(_piece(4))
    with pytest.raises(PlanError, match="plan 4 is complete here"):
        plans.put(_piece(4, 1))


def test_a_plan_of_which_a_piece_is_lost_is_forgotten() -> None:
    notes: dict[bytes, bytes] = {}
    plans = Installed(notes).plans
    plans.put(_piece(1, more=True, ways=WAYS))
    plans.put(_piece(1, 1, topics=TOPICS))
    plans.use(1)
    notes[next(key for key in notes if key.endswith(b"\x01"))] = b"what no version has written"
    again = Installed(notes).plans
    assert not again.tables
    assert not again.tables.epoch
    assert all(len(key) == 1 or key.endswith(b"\x01") for key in notes)


def test_the_plan_in_force_and_those_before_it_are_kept() -> None:
    tables = PlanTables()
    for epoch in range(1, 9):
        tables.install(PlanTable(epoch, (), [Own(1, b"t", None)]))
        if epoch == 2:
            assert tables.use(2)
    assert len(tables.tables) == MOST_EPOCHS
    assert {2, 8} <= set(tables.tables)
    assert not tables.use(3)
    assert tables.epoch == 2
    tables.clear()
    assert not tables
    assert tables.find(b"t", "") is None


def test_what_a_stream_carries_is_known_by_its_topic() -> None:
    tables = PlanTables()
    tables.install(PlanTable(1, (), [Own(1, b"grid/v", None), Own(2, b"grid/i", "p")]))
    tables.use(1)
    origin = Origin("p")
    message = Message(b"grid/v", b"payload", 1, origin=origin)
    writing = Writing(message)
    writing.add(message, 0.0)
    assert tables.of_parcel(writing.done()) == Planned(1, 1)
    named = put_addresses({"": Address(True, (Share("g", "grid/#"),))}, 1) + writing.done()
    assert tables.of_parcel(named) == Planned(1, 1)
    packets = b"\x30\x0a\x00\x06grid/i12"
    run = Burst(packets, 1, 2, b"grid/i", 4, origin, 1, 0.0, 0.0, 1)
    assert tables.of_parcel(write_run(run)) == Planned(1, 2)
    assert tables.of_parcel(write_run(Burst(packets, 1, 2, b"grid/i", 4, Origin("q"), 1, 0.0, 0.0, 1))) is None
    assert tables.of_parcel(b"") is None
    assert tables.of_parcel(b"\x09\x01\x02") is None
    assert tables.of_parcel(writing.done()[:3]) is None


def test_who_goes_by_another_strategy_takes_no_plan() -> None:
    core = Broker()
    joined = Joined(core, life=1, incarnation=1, strategy="tree")
    with pytest.raises(PlanError, match="this broker goes by tree"):
        joined.take_plan(_piece(1), 0.0)
    joined.use("path", 0.0)
    joined.take_plan(_piece(1), 0.0)
    assert joined.node.carrier.strategy.name == "plan"
    joined.go_by_plan(1, 0.0)
    joined.use("flood", 0.0)
    assert joined.node.carrier.strategy.name == "flood"
    joined.use("path", 0.0)
    assert joined.node.carrier.strategy.name == "plan"
