"""Small networks that tests share."""

from __future__ import annotations

from dataclasses import replace

from tieline.sim.sensors.parameters import Parameters

SMALL = replace(
    Parameters(), nodes=60, radius_m=110.0, clusters=6, sinks=4, events_per_100s=300.0, settle_s=10.0, duration_s=20.0,
    drain_s=10.0, change_s=7.0,
)  # fmt: skip
#: Hardly any energy: nodes, heads and clusters die within seconds.
DYING = replace(SMALL, battery_j=0.02, duration_s=30.0, election_s=5.0)
