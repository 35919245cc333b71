"""The world: one microgrid with its seed, from solved steps of 15 minutes to readings of every meter at every second.

Time is cut into blocks of a fixed number of steps, so that the same seed, start and step give the same bytes however
the world is consumed.  A block is arrays; messages are made of them at the edge.  Loads and the grid outside fluctuate
around what was solved as Ornstein-Uhlenbeck processes do, continued from one block to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final  # Any: scipy comes without types

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.chronicle import Chronicle
from tieline.sim.microgrid.disturbance import apply
from tieline.sim.microgrid.extra import Unbuildable, need
from tieline.sim.microgrid.flow import STEP_S, PowerFlow, sensitivity
from tieline.sim.microgrid.messages import Message
from tieline.sim.microgrid.network import Complex, build, grown
from tieline.sim.microgrid.network_cache import keep
from tieline.sim.microgrid.scenario import Happening, Rates
from tieline.sim.microgrid.swing import NOMINAL_HZ
from tieline.sim.microgrid.telling import UNIT_V, Scene


class Fluctuation:
    """``width`` independent processes around zero, each with standard deviation ``sigma`` and memory ``tau_s``.

    Sampled every ``step_s`` such a process is an AR(1) sequence with coefficient exp(-step/tau), whatever the step is;
    it begins in its stationary distribution.
    """

    def __init__(self, rng: np.random.Generator, *, sigma: float, tau_s: float, step_s: float, width: int) -> None:
        self._filter: Any = need("scipy.signal").lfilter
        self._rng = rng
        self._memory = float(np.exp(-step_s / tau_s))
        self._gain = sigma * float(np.sqrt(1 - self._memory**2))
        self._last = sigma * rng.standard_normal(width)

    def next(self, count: int) -> NDArray[np.float64]:
        """The next ``count`` values of each process, one row for each step."""
        shocks = self._rng.standard_normal((count, len(self._last)))
        before = (self._memory * self._last)[np.newaxis]
        values, _state = self._filter([self._gain], [1.0, -self._memory], shocks, axis=0, zi=before)
        self._last = values[-1]
        made: NDArray[np.float64] = values
        return made


Floats = NDArray[np.float64]

#: Steps in a block: an hour of seconds.
BLOCK_STEPS: Final = 3_600
#: Below this a meter has nothing to take a frequency from.
DEAD_V: Final = 11.5
#: Relative fluctuation of each load, and of the voltage that all nodes get from outside; noise of a meter.
_LOAD_SIGMA, _LOAD_TAU_S = 0.08, 40.0
_OUTSIDE_SIGMA, _OUTSIDE_TAU_S = 0.003, 120.0
_METER_SIGMA_V: Final = 0.05
#: Frequency of the large grid around 50 Hz.
_GRID_SIGMA_HZ, _GRID_TAU_S = 0.018, 90.0


@dataclass(frozen=True, slots=True)
class Block:
    """Some steps of the world: one row for each step, one column for each node."""

    #: When each step ends, in seconds since 1970; a reading is the mean over the step before.
    times: Floats
    voltage: Floats
    current: Floats
    power: Floats
    reactive: Floats
    #: One value for each step; a meter without voltage does not see it.
    frequency: Floats
    #: Everything but readings, in the order of time.
    messages: list[Message]

    def first(self, steps: int) -> Block:
        """The block cut short."""
        end_s = float(self.times[steps - 1])
        return Block(
            self.times[:steps],
            self.voltage[:steps],
            self.current[:steps],
            self.power[:steps],
            self.reactive[:steps],
            self.frequency[:steps],
            [each for each in self.messages if each.sent_s < end_s],
        )


class World:
    """A microgrid from a moment on."""

    # Whatever `tieline sim` lets a user choose, each with its default.
    def __init__(
        self,
        seed: int = 1,
        network: str = "cigre_lv",
        start: datetime | float = datetime(2026, 3, 2, tzinfo=UTC),
        *,
        step_s: float = 1.0,
        load: float = 1.0,
        grid: str | None = None,
        rates: Rates | None = None,
        script: Sequence[Happening] = (),
    ) -> None:
        """``network`` as for :func:`~tieline.sim.microgrid.network.build`; ``load`` multiplies all loads.

        ``step_s`` is the time between two readings of a meter, ``grid`` the name in topics.  ``rates`` say how often
        things happen by themselves, and ``script`` what happens besides.
        """
        self.seed = seed
        self.start_s = start.timestamp() if isinstance(start, datetime) else float(start)
        if step_s <= 0 or (step_s * 1_000) % 1:
            raise Unbuildable(f"a step of {step_s:g} s is refused: it takes a whole number of milliseconds above zero.")
        if load <= 0:
            raise Unbuildable(f"a load of {load:g} is refused: it takes a factor above zero.")
        self.step_s = step_s
        self.network = grown(keep(network, build), load)
        self.grid = network.replace("_", "-") if grid is None else grid
        self._flow = PowerFlow(self.network)
        scene = Scene(self.grid, self.network, self._flow)
        self._chronicle = Chronicle(scene, seed=seed, rates=Rates() if rates is None else rates, script=script)
        self.meters = tuple(scene.meter(node) for node in range(len(self.nodes)))
        #: How long after the end of a step each meter sends its reading: all of them within a second.
        lags = np.random.default_rng([seed, 2]).permutation(len(self.nodes)) + 1
        self.lags_s: Floats = np.round(lags * min(step_s, 1.0) / (len(self.nodes) + 1), 3)
        self._active, self._reactive = sensitivity(self.network)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes with a meter, by name."""
        return self.network.nodes

    def blocks(self, duration_s: float | None = None) -> Iterator[Block]:
        """The world from its start, for so long or without end."""
        rng = np.random.default_rng([self.seed, 0])
        width, step = len(self.nodes), self.step_s
        load = Fluctuation(rng, sigma=_LOAD_SIGMA, tau_s=_LOAD_TAU_S, step_s=step, width=width)
        outside = Fluctuation(rng, sigma=_OUTSIDE_SIGMA, tau_s=_OUTSIDE_TAU_S, step_s=step, width=1)
        grid = Fluctuation(rng, sigma=_GRID_SIGMA_HZ, tau_s=_GRID_TAU_S, step_s=step, width=1)
        left = None if duration_s is None else round(duration_s / step)
        number = 0
        while left is None or left > 0:
            steps = np.arange(number * BLOCK_STEPS + 1, (number + 1) * BLOCK_STEPS + 1, dtype=np.float64)
            times = self.start_s + step * steps
            noise = _METER_SIGMA_V * rng.standard_normal((BLOCK_STEPS, width))
            block = self._block(times, load.next(BLOCK_STEPS), outside.next(BLOCK_STEPS), grid.next(BLOCK_STEPS), noise)
            if left is not None and left < BLOCK_STEPS:
                block = block.first(left)
            left = None if left is None else left - BLOCK_STEPS
            number += 1
            yield block

    def _block(self, times: Floats, load: Floats, outside: Floats, grid: Floats, noise: Floats) -> Block:
        begin_s, end_s = float(times[0]) - self.step_s, float(times[-1])
        voltage, power = self._solved(times)
        # A fluctuating load moves the voltage of its neighbours too, through the impedances that they share.
        wobble = power * load
        moved = wobble.real @ self._active.T + wobble.imag @ self._reactive.T
        volts = UNIT_V * (voltage * (1 + outside) + moved) + noise
        power = power + wobble
        frequency = NOMINAL_HZ + grid[:, 0]
        drawn = -power
        for island in self._chronicle.islands(begin_s, end_s):
            frequency = island.hertz(times, frequency)
            volts = volts * island.voltage_factor(times)[:, np.newaxis]
            island.shed(times, drawn)
        disturbances = list(self._chronicle.disturbances(begin_s, end_s))
        apply(disturbances, times, self.step_s, volts, drawn)
        volts = np.maximum(volts, 0.0)
        line_v = volts / UNIT_V * self.network.kilovolts * 1_000
        with np.errstate(divide="ignore", invalid="ignore"):
            current = np.where(volts < DEAD_V, 0.0, np.abs(drawn) * 1_000 / (np.sqrt(3) * line_v))
        return Block(times, volts, current, drawn.real, drawn.imag, frequency, self._chronicle.messages(begin_s, end_s))

    def _solved(self, times: Floats) -> tuple[Floats, Complex]:
        """Voltages per unit and powers at each moment, on the straight line between two solved ones."""
        first = int(times[0] // STEP_S)
        voltage, power = self._flow.between(first, int(times[-1] // STEP_S) + 2 - first)
        place = times / STEP_S - first
        below = place.astype(np.int64)
        part = (place - below)[:, np.newaxis]
        return (
            (1 - part) * voltage[below] + part * voltage[below + 1],
            (1 - part) * power[below] + part * power[below + 1],
        )
