"""The compiled loop does what it says in Python, draw by draw."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tieline.compiling import PLAIN

_PROGRAM = """
import hashlib, sys
from dataclasses import replace
from tests.sim.sensors.worlds import DYING
from tieline.sim.sensors.protocols import simulation
from tieline.sim.sensors.world import World
tiny = replace(DYING, nodes=24, radius_m=70.0, clusters=3, sinks=2, duration_s=3.0, settle_s=2.0, drain_s=1.0,
               battery_j=0.003)
state = hashlib.sha256()
for name in ("rpcp-filter", "rpcp-literal-direct", "psm", "cetp", "flooding"):
    run = simulation(name, World(tiny, 1))
    run.run()
    air = run.radio.air
    for array in (air.received, air.counters, air.spent, air.dice):
        state.update(array.tobytes())
    assert air.counters[0] > 0
sys.stdout.write(state.hexdigest())
"""


def test_machine_code_and_plain_python_agree_to_the_last_bit() -> None:
    pytest.importorskip("numba")
    environment = {name: value for name, value in os.environ.items() if name != PLAIN}
    found = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], env={**environment, **more}, capture_output=True, text=True, check=True
        ).stdout
        for more in ({}, {PLAIN: "1"})
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 2 * hashlib.sha256().digest_size
