"""What the kernel says of processes is read correctly."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from hypothesis import given
from hypothesis import strategies as st

from tests.kits.patience import until
from tieline.bench.load.job import quantile
from tieline.bench.measure import (
    CostMeter,
    Costs,
    busy_s,
    cpu_ns,
    family,
    memory_bytes,
    memory_peak_bytes,
    new_memory_peak,
)


def test_own_cpu_time_agrees_with_the_interpreter() -> None:
    before, own = cpu_ns([os.getpid()]), time.process_time_ns()
    assert 0 <= own - before < 1_000_000_000
    assert cpu_ns([os.getpid()]) >= own


def test_the_family_of_a_process_includes_its_children() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = family(os.getpid())
        assert found[0] == os.getpid()
        assert child.pid in found
        until(lambda: memory_bytes([child.pid]) > 100_000, "a Python that has started takes more than that")
    finally:
        child.communicate(b"\n")
    assert child.pid not in family(os.getpid())
    assert memory_bytes([child.pid]) == 0
    assert cpu_ns([child.pid]) == 0


def test_the_peak_of_memory_outlives_what_was_held_and_begins_anew() -> None:
    new_memory_peak()
    before, held = memory_peak_bytes(), bytearray(b"x") * 200_000_000
    assert len(held) == 200_000_000
    del held
    assert memory_peak_bytes() - before > 150_000_000
    new_memory_peak()
    assert memory_peak_bytes() - before < 100_000_000


def test_a_meter_sees_work() -> None:
    meter = CostMeter(os.getpid())
    sum(range(200_000))
    reading = meter.read()
    assert reading.broker_s > 0
    assert reading.wall_s > 0
    assert busy_s() > 0


def test_shares_are_of_the_wall_time() -> None:
    shares = Costs(broker_s=1.0, generator_s=0.5, machine_s=3.5, wall_s=2.0).shares()
    assert shares == {"broker_cores": 0.5, "generator_cores": 0.25, "other_cores": 1.0}


@given(st.lists(st.integers(), min_size=1), st.sampled_from([0.5, 0.99]))
def test_a_quantile_has_its_share_of_the_sample_below(sample: list[int], q: float) -> None:
    ordered = sorted(sample)
    value = quantile(ordered, q)
    assert sum(one <= value for one in ordered) >= q * len(ordered)
    assert sum(one < value for one in ordered) < q * len(ordered)
