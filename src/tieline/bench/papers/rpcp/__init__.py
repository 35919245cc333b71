"""The covering paper in a simulated sensor network: its Figures 4 to 7, its theorems, and what they hang on.

``runs.py`` runs simulations on all processors; ``sweep.py`` has Figures 4, 6 and 7, ``lifetime.py`` Figure 5,
``readings.py`` the readings of the protocol beside each other, ``sensitivity.py`` what results hang on, and
``theorems.py`` Theorems 1 to 4.
"""

from __future__ import annotations

import math

from tieline.bench.papers.frame.declaration import Experiment, Figure, Paper, Parameter
from tieline.bench.papers.rpcp import lifetime, readings, sensitivity, sweep, theorems
from tieline.sim.sensors.parameters import Parameters, stated

_AIRTIME = ("frame_ms",)
_BOTH = ("frame_ms", "idle_mw")

PAPER = Paper(
    name="rpcp",
    title="The covering paper, beside what we measure",
    citation="The routing protocol for content-based publish/subscribe (RPCP) in mobile sensor networks: subscriptions "
    "that cover each other in a tree of cluster heads. Its table of parameters, its formulas and all plotted values "
    "are missing from the text that we have: only its sentences can be compared.",
    package=__name__,
    libraries=("numba", "numpy", "scipy"),
    parameters=tuple(
        Parameter(
            name=one.name,
            value="everywhere" if math.isinf(one.value) else one.value,
            unit=one.unit,
            origin=one.origin,
            note=one.note,
        )
        for one in stated(Parameters())
    ),
    experiments=(
        Experiment(
            name="sweep",
            title="delay, energy and success over the number of events",
            measure=sweep.measure,
            figures=(
                Figure(
                    name="fig-4",
                    title="Figure 4: receiving time",
                    tables=("sweep",),
                    caption="Mean time from an event to the sinks that want it. Only deliveries that took place have a "
                    "delay: read it beside the success rate. 200 sensors, 10 mobile sinks, events within 100 s.",
                    fitted=_AIRTIME,
                    panels=sweep.delay_panels,
                    claims=sweep.delay_claims,
                    height=4.6,
                ),
                Figure(
                    name="fig-6",
                    title="Figure 6: energy",
                    tables=("sweep",),
                    caption="Energy that all sensors spend on frames and matching in the same worlds; at the right "
                    "with what idling costs, which is the same for all protocols.",
                    fitted=_BOTH,
                    panels=sweep.energy_panels,
                    claims=sweep.energy_claims,
                    height=4.6,
                ),
                Figure(
                    name="fig-7",
                    title="Figure 7: success rate",
                    tables=("sweep",),
                    caption="Deliveries that took place, of those that were wanted when the event happened. A full "
                    "queue drops. Dashed: the paper's 80 %.",
                    fitted=_AIRTIME,
                    panels=sweep.success_panels,
                    sheet=sweep.losses_sheet,
                    claims=sweep.success_claims,
                    width=8.5,
                    height=4.6,
                    columns=1,
                ),
            ),
        ),
        Experiment(
            name="lifetime",
            title="how long the network lives",
            measure=lifetime.measure,
            figures=(
                Figure(
                    name="fig-5",
                    title="Figure 5: lifetime",
                    tables=("lifetime",),
                    caption="Seconds until the network has died, by four definitions; the paper's is the last one. "
                    "Each sensor has 0.5 J, and one that only idles lives 1,000 s. The table is for 800 events in "
                    "100 s, every protocol in the same worlds.",
                    fitted=_BOTH,
                    panels=lifetime.panels,
                    sheet=lifetime.sheet,
                    claims=lifetime.claims,
                ),
                Figure(
                    name="fig-5-gains",
                    title="Figure 5: who lives, and the gains",
                    tables=("lifetime", "living"),
                    caption="Living sensors over time, and how much longer RPCP's network lives than the others', at "
                    "800 events in 100 s.",
                    fitted=_BOTH,
                    panels=lifetime.living_panels,
                    height=4.6,
                ),
            ),
        ),
        Experiment(
            name="theorems",
            title="Theorems 1 to 4 on random trees",
            measure=theorems.measure,
            figures=(
                Figure(
                    name="theorems",
                    title="Theorems 1 to 4",
                    tables=("layers", "nested", "routes", "dimensions", "reached"),
                    caption="Random trees of five layers, each head with two to four below it and three subscriptions "
                    "of its own to one topic; suboptimal covering by the broker's own forest.",
                    panels=theorems.panels,
                    claims=theorems.claims,
                ),
                Figure(
                    name="orders",
                    title="Suboptimal covering and the order of arrival",
                    tables=("orders",),
                    caption="Entries of the core, where the same subscriptions arrive in another order; optimal "
                    "covering withdraws what something larger covers, and does not mind.",
                    panels=theorems.order_panels,
                    width=6.5,
                    columns=1,
                ),
            ),
        ),
        Experiment(
            name="readings",
            title="the readings of the protocol",
            measure=readings.measure,
            figures=(
                Figure(
                    name="readings",
                    title="What filtering, covering, advertisements and fusion are worth",
                    tables=("readings",),
                    caption="Energy at 800 events in 100 s. Restless: 40 subscriptions of each sink, one of which "
                    "changes every 5 s. Regional: a topic can be sensed within 60 m of some place. Three witnesses: "
                    "each happening is reported by three sensors.",
                    fitted=_AIRTIME,
                    panels=readings.panels,
                    sheet=readings.sheet,
                    claims=readings.claims,
                    width=6.8,
                    height=3.6,
                ),
            ),
        ),
        Experiment(
            name="fitted",
            title="what the results hang on",
            measure=sensitivity.measure_fitted,
            figures=(
                Figure(
                    name="fitted",
                    title="The two fitted parameters",
                    tables=("idle", "airtime"),
                    caption=f"Gains in lifetime over the power of an idle sensor, each with {lifetime.BATTERY_J:g} J, "
                    "and delays over the airtime of a frame: either can be chosen so that a number of the paper comes "
                    "out.",
                    fitted=_BOTH,
                    panels=sensitivity.fitted_panels,
                    height=4.4,
                ),
                Figure(
                    name="topics",
                    title="How fine topics are",
                    tables=("topics",),
                    caption="Energy at 800 events in 100 s, over the number of topics among which subscriptions and "
                    "events are spread.",
                    fitted=_AIRTIME,
                    panels=sensitivity.topics_panels,
                    claims=sensitivity.topics_claims,
                    width=7.0,
                    columns=1,
                ),
            ),
        ),
        Experiment(
            name="size",
            title="larger networks",
            measure=sensitivity.measure_size,
            figures=(
                Figure(
                    name="size",
                    title="Larger networks of the same density",
                    tables=("size",),
                    caption="200 events in 100 s, one sink for every hundred sensors; with --long up to 10,000 "
                    "sensors.",
                    fitted=_AIRTIME,
                    panels=sensitivity.size_panels,
                ),
            ),
        ),
    ),
)
