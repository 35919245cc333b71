"""A lake against a list of batches: wherever it stops, a batch is in the tables as a whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.kits.examples import examples
from tests.pipeline.lake import kit
from tests.pipeline.lake.crashing import Crash, CrashingDisk
from tieline.pipeline.lake import Lake
from tieline.pipeline.lake.compaction import compact

#: Where to stop; most steps of one change are below the greatest.
STOPS = st.none() | st.integers(1, 60)


class LakeAgainstModel(RuleBasedStateMachine):
    """Batches land, are repeated, compacted and removed; the machine stops at any step and starts again."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="lake-"))
        self.lake = Lake.create(self.root / "lake", kit.settings())
        #: Rows that landed: (offset, day) by table.
        self.readings: list[tuple[int, int]] = []
        self.switches: list[tuple[int, int]] = []
        self.batches = 0
        self.offset = 0

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def reopen(self, at: int | None = None, *, can_exchange: bool = True) -> CrashingDisk:
        disk = CrashingDisk(at=at, can_exchange=can_exchange)
        self.lake.plain.disk = disk
        return disk

    @rule(readings=st.integers(0, 3), switches=st.integers(0, 2), day=st.integers(1, 3), at=STOPS)
    def land(self, readings: int, switches: int, day: int, at: int | None) -> None:
        count = readings + switches
        offsets = range(self.offset, self.offset + count)
        self.offset += count
        content = {
            table: kit.rows_of(self.lake, table, chosen, day=day)
            for table, chosen in ((kit.READING, offsets[:readings]), (kit.SWITCH, offsets[readings:]))
            if len(chosen)
        }
        self.reopen(at)
        try:
            kit.land(self.lake, content)
        except Crash:
            self.restart(None)
            if self.lake.state().batch != self.batches:
                return
        self.batches += 1
        self.readings += [(offset, day) for offset in offsets[:readings]]
        self.switches += [(offset, day) for offset in offsets[readings:]]

    @rule(keep_from=st.none() | st.integers(1, 3), at=STOPS, can_exchange=st.booleans())
    def compact(self, keep_from: int | None, at: int | None, can_exchange: bool) -> None:
        since = None if keep_from is None else date(2026, 3, keep_from)
        self.reopen(at, can_exchange=can_exchange)
        try:
            list(compact(self.lake, keep_from=since))
        except Crash:
            self.restart(None)
            # each table is as it was or as it was to become
            self._forget(keep_from, only_if_gone=True)
            return
        self._forget(keep_from)

    @rule(at=STOPS)
    def restart(self, at: int | None) -> None:
        try:
            self.lake = Lake.open(self.root / "lake", disk=CrashingDisk(at=at))
        except Crash:
            self.lake = Lake.open(self.root / "lake")

    def _forget(self, keep_from: int | None, *, only_if_gone: bool = False) -> None:
        if keep_from is None:
            return
        for table, rows in ((kit.READING, self.readings), (kit.SWITCH, self.switches)):
            kept = [row for row in rows if row[1] >= keep_from]
            if not only_if_gone or kit.offsets_in(self.lake, table) == sorted(offset for offset, _day in kept):
                rows[:] = kept

    @invariant()
    def holds_what_landed(self) -> None:
        assert kit.offsets_in(self.lake, kit.READING) == sorted(offset for offset, _day in self.readings)
        assert kit.offsets_in(self.lake, kit.SWITCH) == sorted(offset for offset, _day in self.switches)
        assert self.lake.state().batch == self.batches - 1

    @invariant()
    def has_no_debris(self) -> None:
        assert kit.debris(self.root / "lake") == []
        assert list((self.root / "lake" / "_landing").iterdir()) == []


TestLakeAgainstModel = LakeAgainstModel.TestCase
TestLakeAgainstModel.settings = examples(30, stateful_step_count=12, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("can_exchange", [True, False])
def test_every_single_step_of_a_landing_and_a_compaction_may_be_the_last(tmp_path: Path, can_exchange: bool) -> None:
    lake = Lake.create(tmp_path / "before", kit.settings())
    for number in range(2):
        kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [number])})

    def prepared(name: str) -> Lake:
        shutil.copytree(tmp_path / "before", tmp_path / name)
        return Lake.open(tmp_path / name)

    def change(lake: Lake) -> None:
        content = {table: kit.rows_of(lake, table, [2]) for table in (kit.READING, kit.SWITCH)}
        kit.land(lake, content)
        list(compact(lake))

    measured = prepared("measured")
    measured.plain.disk = disk = CrashingDisk(can_exchange=can_exchange)
    change(measured)
    assert disk.steps > 30
    for at in range(1, disk.steps + 1):
        lake = prepared(str(at))
        lake.plain.disk = CrashingDisk(at=at, can_exchange=can_exchange)
        with pytest.raises(Crash):
            change(lake)
        lake = Lake.open(tmp_path / str(at))
        landed = lake.state().batch == 2
        assert kit.offsets_in(lake, kit.READING) == ([0, 1, 2] if landed else [0, 1])
        assert kit.offsets_in(lake, kit.SWITCH) == ([2] if landed else [])
        assert kit.debris(lake.plain.layout.root) == []
        assert list(lake.plain.layout.staging.iterdir()) == []
        shutil.rmtree(tmp_path / str(at))


def test_every_single_step_of_bringing_a_lake_forward_may_be_the_last(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "before", kit.settings())
    for number in range(2):
        content = {
            table: kit.rows_of(lake, table, [2 * number, 2 * number + 1], day=number + 1) for table in kit.TABLES
        }
        kit.land(lake, content)
    kit.make_first_version(lake)
    assert (lake.plain.layout.table(kit.READING) / "batch=0" / "day=2026-03-01").is_dir()
    disk = CrashingDisk()
    shutil.copytree(tmp_path / "before", tmp_path / "measured")
    Lake.open(tmp_path / "measured", disk=disk)
    for at in range(1, disk.steps + 1):
        root = tmp_path / str(at)
        shutil.copytree(tmp_path / "before", root)
        with pytest.raises(Crash):
            Lake.open(root, disk=CrashingDisk(at=at))
        found = Lake.open(root)
        assert found.document.version == 2
        for table in kit.TABLES:
            assert kit.offsets_in(found, table) == [0, 1, 2, 3]
            assert sorted(path.name for path in found.plain.layout.table(table).iterdir()) == [
                "day=2026-03-01",
                "day=2026-03-02",
            ]
        assert kit.debris(root) == []
        shutil.rmtree(root)
