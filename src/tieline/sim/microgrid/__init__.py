"""A microgrid: networks, profiles, faults, islanding, and the meters that report it."""

from tieline.sim.microgrid.messages import Message
from tieline.sim.microgrid.scenario import Fault, Islanding, Rates, Upset
from tieline.sim.microgrid.world import World

__all__ = ["Fault", "Islanding", "Message", "Rates", "Upset", "World"]
