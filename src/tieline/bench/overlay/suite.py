"""The benchmark of joined brokers: what its numbers mean, the goals they are held against, tables and picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tieline.bench.brokers import BASELINE, SUBJECT
from tieline.bench.metrics import METRICS as LOAD_METRICS
from tieline.bench.metrics import Metric
from tieline.bench.overlay import strategies_shown
from tieline.bench.overlay.cases import ALL, CUTS, PAIR, THIN
from tieline.bench.overlay.regional import FULL, brokers_of
from tieline.bench.suite.declaration import Goal, GroupTable, Suite, ratio_goal, value_goal
from tieline.bench.suite.picture import GREEN, RUST, SKY, Picture, bars, group_panel, labels, limit
from tieline.bench.suite.results import Key, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS: Final = {
    **LOAD_METRICS,
    **strategies_shown.METRICS,
    "single_rate": Metric("the same on one broker", "/s", more_is_better=True),
    "single_p50_us": Metric("the same on one broker, median", "µs"),
    "cpu_ratio": Metric("CPU of both brokers together for a message : that of one broker alone", "x"),
    "added_p50_us": Metric("what the hop adds to the median time from send to receive", "µs"),
    "packet_bytes": Metric("bytes of the packet as its publisher sends it, 64 B of which are payload", "B"),
    "bytes_alone": Metric("bytes on the link in both directions, for a message that travels alone", "B"),
    "bytes_together": Metric("the same for each of fifty messages that are sent at once", "B"),
    "suback_p50_ms": Metric("median time from SUBSCRIBE to SUBACK, for a filter that is new to all brokers", "ms"),
    "suback_max_ms": Metric("the longest of them", "ms"),
    "broker_bytes": Metric("memory of one broker", "B"),
    "bytes_interest": Metric("memory of each broker for each subscription anywhere", "B"),
    "urgent_p50_ms": Metric("median time of an urgent message over all hops", "ms"),
    "urgent_p99_ms": Metric("99 of 100 urgent messages took no longer", "ms"),
    "urgent_max_ms": Metric("the longest", "ms", shows_worst=True),
    "bound_ms": Metric("what is promised: for each hop the kernel's 4 kB, a segment and a floor quantum", "ms"),
    "of_bound": Metric("the time of 99 of 100, times what is promised", "x"),
    "over_bound": Metric("urgent messages that took longer than is promised", ""),
    "low_p50_ms": Metric("median time of a low message", "ms"),
    "low_max_ms": Metric("the longest of them", "ms", shows_worst=True),
    "low_served": Metric("part of the low messages that have arrived", "share", more_is_better=True),
    "link_bytes_per_s": Metric("bulk that arrives", "B/s", more_is_better=True),
    "disordered": Metric("messages that came twice or behind a later one", ""),
    "receivers": Metric("brokers that want a publication", "mean"),
    "messages": Metric("copies that it takes; among brokers that know each other, links that it crosses", "mean"),
    "per_receiver": Metric("the same for each broker that wants it", "mean"),
    "event_bytes": Metric("bytes of these, with TCP and IP", "B"),
    "link_bytes": Metric("the same on every link that they cross", "B"),
    "missed": Metric("share of deliveries that did not come", "share"),
    "false_positives": Metric("of the brokers that got a copy, the share that wanted nothing", "share"),
    "hops": Metric("hops, or links, to the last receiver", "mean"),
    "last_ms": Metric("until the last receiver has it, without queues", "ms"),
    "table_bytes": Metric("what a broker keeps of others", "B"),
    "missed_stale": Metric("QoS 0, before anybody has looked around: share missed", "share", shows_worst=True),
    "missed_healed": Metric("QoS 0, after repair", "share", shows_worst=True),
    "missed_stale_assured": Metric("QoS 1, published before anybody has looked around", "share", shows_worst=True),
    "wrong_fingers": Metric("share of fingers that are wrong in the end", "share", shows_worst=True),
    "worst_fingers": Metric("share of fingers that are wrong at the worst moment", "share", shows_worst=True),
    "joined": Metric("newcomers that are on the ring in the end", "share", more_is_better=True),
    "upkeep_kbit_s": Metric("what a broker sends to look around, every 2 s", "kbit/s"),
    "paper_upkeep_kbit_s": Metric("the same every 60 ms, as the ring paper has it, with 20 brokers", "kbit/s"),
    "gateway_bytes": Metric("what a gateway keeps of others, on both sides", "B"),
    "granted_ms": Metric("until the subscriptions of a newcomer are acknowledged", "ms"),
    "told_bytes": Metric("bytes that its region says more when a broker is replaced", "B"),
    "told_elsewhere": Metric("the same of all other regions together, and between gateways", "B"),
    "churn_missed": Metric("deliveries with QoS 1 that were missed or doubled while brokers are replaced", ""),
    "bulk_p50_ms": Metric("median time of bulk; what never comes counts as the whole run", "ms"),
    "delivered": Metric(
        "part of the bulk that arrives before it expires, 3 s after it was sent", "share", more_is_better=True
    ),
    "fullest": Metric("what the ways put on the fullest link, times what it carries", "x"),
    "off_plan": Metric("messages on all links, beside those that were to cross: all differences, as a share", "x"),
    "plans": Metric("plans that were put in force", "", more_is_better=True),
    "published": Metric("messages with QoS 1 meanwhile", "", more_is_better=True),
    "lost": Metric("messages that never came", ""),
    "doubled": Metric("messages that came twice", ""),
    "moved": Metric("flows that take another way with each plan", "", more_is_better=True),
    "apply_s": Metric("the longest `tieline plan apply`, from its start to its end", "s", shows_worst=True),
    "gap_s": Metric("the longest that a flow over the link stood still", "s", shows_worst=True),
    "flows": Metric("flows over the link", ""),
    "replan_s": Metric("from the end of what was counted until another plan was in force", "s", shows_worst=True),
    "search_s": Metric("of that, looking for the plan", "s"),
    "recovery_s": Metric("from the broker's death, or its restart, until a message crosses", "s", shows_worst=True),
}
TABLES: Final = {
    "hop": GroupTable(
        title="Over one hop",
        columns={
            "rate": "throughput", "single_rate": "one broker", "cpu_us_delivered": "CPU per message, both",
            "cpu_ratio": "times one broker's", "p50_us": "p50", "p99_us": "p99", "added_p50_us": "the hop adds",
        },
    ),
    "wire": GroupTable(
        title="Bytes between two brokers for a message with 64 B of payload",
        columns={"packet_bytes": "as published", "bytes_alone": "alone", "bytes_together": "fifty at once, each"},
    ),
    "growth": GroupTable(
        title="SUBSCRIBE to SUBACK, a filter that is new to all brokers of a mesh",
        columns={"suback_p50_ms": "p50", "suback_max_ms": "longest"},
    ),
    "memory": GroupTable(
        title="Memory", columns={"broker_bytes": "each broker", "bytes_interest": "each subscription, at each broker"}
    ),
    "thin": GroupTable(
        title="Three hops of 128 kbit/s, full of bulk",
        columns={
            "urgent_p50_ms": "urgent p50", "urgent_p99_ms": "urgent p99", "bound_ms": "promised",
            "over_bound": "later than that", "low_p50_ms": "low p50", "low_max_ms": "low, longest",
            "low_served": "low served", "link_bytes_per_s": "bulk",
        },
    ),
    "thin-cut": GroupTable(
        title="The same links with 20 ms each way: nothing passes the middle one for 6 s, one way and then the other",
        columns={
            "published": "messages", "lost": "lost", "doubled": "twice", "disordered": "out of order",
            "urgent_p50_ms": "urgent p50", "gap_s": "longest standstill",
        },
    ),
    "death": GroupTable(title="A broker is killed with SIGKILL", columns={"recovery_s": "until messages cross"}),
    **strategies_shown.TABLES,
    "ring": GroupTable(
        title="Simulated brokers that want 4.5 % of all publications each, 100 B of payload",
        columns={
            "receivers": "receivers", "messages": "messages", "per_receiver": "each receiver",
            "event_bytes": "bytes", "link_bytes": "on links", "missed": "missed", "false_positives": "in vain",
            "hops": "hops", "last_ms": "last has it", "table_bytes": "known of others",
        },
    ),
    "ring-deaths": GroupTable(
        title="A fifth of all simulated brokers dies at once",
        columns={
            "missed_stale": "missed before repair", "missed_healed": "after it",
            "missed_stale_assured": "with QoS 1", "wrong_fingers": "wrong fingers left",
        },
    ),
    "ring-churn": GroupTable(
        title="One simulated broker in a hundred is replaced each minute",
        columns={
            "worst_fingers": "wrong fingers, worst", "wrong_fingers": "30 s later", "joined": "newcomers joined",
            "upkeep_kbit_s": "upkeep", "paper_upkeep_kbit_s": "upkeep every 60 ms",
        },
    ),
    "regions": GroupTable(
        title="Regions of 31 simulated brokers and a gateway each, which want 4.5 % of all publications",
        columns={
            "receivers": "receivers", "messages": "links crossed", "per_receiver": "each receiver",
            "link_bytes": "on links", "missed": "missed", "hops": "links to the last", "last_ms": "last has it",
            "table_bytes": "known of others", "gateway_bytes": "by a gateway", "granted_ms": "newcomer's SUBACK",
            "told_bytes": "said in its region", "told_elsewhere": "elsewhere",
        },
    ),
    "plan": GroupTable(
        title="Twelve brokers (abilene), links of 128 kbit/s, one of them asked for too much",
        columns={
            "urgent_p50_ms": "urgent p50", "urgent_p99_ms": "urgent p99", "bulk_p50_ms": "bulk p50",
            "delivered": "bulk delivered in time", "fullest": "fullest link", "off_plan": "away from what was to cross",
        },
    ),
    "replan": GroupTable(
        title="Ten plans in turns under load, QoS 1, the same network",
        columns={
            "plans": "plans", "moved": "flows moved by each", "published": "messages", "lost": "lost",
            "doubled": "twice", "disordered": "out of order", "apply_s": "apply, longest",
        },
    ),
    "cut": GroupTable(
        title="A planned link dies",
        columns={
            "flows": "flows over it", "gap_s": "longest standstill", "replan_s": "until another plan",
            "search_s": "of that, the search",
        },
    ),
}  # fmt: skip


def _goals() -> Iterator[Goal]:
    for qos in (0, 1):
        name = f"hop-qos{qos}"
        yield ratio_goal(
            f"QoS {qos} over one hop: throughput, times that of mosquitto's bridge", 3.0, name, "rate", PAIR,
            at_least=True,
        )  # fmt: skip
        yield value_goal(
            f"QoS {qos} over one hop: CPU of both brokers, times that of one", 2.2, "x", (name, SUBJECT), "cpu_ratio"
        )
    yield ratio_goal(
        "one hop: what it adds to the median latency, times what mosquitto's bridge adds", 1.5, "hop-latency",
        "added_p50_us", PAIR,
    )  # fmt: skip
    for name in THIN:
        where = f"three thin hops, {THIN[name][0]}"
        yield value_goal(f"{where}: urgent p99, times the sum of what is promised for each hop", 1.0, "x",
                         (name, SUBJECT), "of_bound")  # fmt: skip
        yield value_goal(f"{where}: part of the low class that is served", 0.99, "share", (name, SUBJECT), "low_served",
                         at_least=True)  # fmt: skip
    for what, metric in (("lost", "lost"), ("delivered twice", "doubled"), ("out of order", "disordered")):
        yield value_goal(f"three thin hops, the middle one cut one way: messages with QoS 1 {what}", 0.0, "",
                         ("thin-cut", SUBJECT), metric)  # fmt: skip
    yield from _plan_goals()
    yield from strategies_shown.goals()
    yield from _region_goals()
    yield value_goal("the middle of a line dies and restarts: until messages cross", 5.0, "s", ("death-line", SUBJECT),
                     "recovery_s")  # fmt: skip
    yield value_goal("a broker of a cycle dies: until messages cross", 2.0, "s", ("death-cycle", SUBJECT), "recovery_s")
    arcs = ("ring-1000", "arcs")
    yield value_goal("a ring of 1,000 brokers, accounts of arcs: messages for each receiver at 4.5 % interest", 3.0,
                     "mean", arcs, "per_receiver")  # fmt: skip
    yield value_goal("a ring of 1,000 brokers, accounts of arcs: deliveries missed", 0.0, "share", arcs, "missed")
    died = ("ring-deaths", "arcs")
    yield value_goal(
        "200 of 1,000 brokers die at once: deliveries missed before repair", 0.002, "share", died, "missed_stale"
    )
    yield value_goal(
        "200 of 1,000 brokers die at once: deliveries missed after repair", 0.0, "share", died, "missed_healed"
    )
    yield value_goal("200 of 1,000 brokers die at once: deliveries with QoS 1 missed", 0.0, "share", died,
                     "missed_stale_assured")  # fmt: skip
    yield value_goal("one broker in a hundred is replaced each minute: wrong fingers 30 s later", 0.0, "share",
                     ("ring-churn", "arcs"), "wrong_fingers")  # fmt: skip


def _region_goals() -> Iterator[Goal]:
    keys = tuple((f"regions-{brokers_of(regions)}", SUBJECT) for regions in reversed(FULL.regions))
    for text, metric in (
        ("deliveries missed", "missed"),
        ("deliveries with QoS 1 missed or doubled while brokers are replaced", "churn_missed"),
    ):
        yield Goal(
            text=f"regions of brokers{{}}: {text}", limit=0.0, unit=METRICS[metric].unit, rows=keys,
            detail=partial(_most_regions, keys), value=partial(_of_most, keys, metric),
        )  # fmt: skip


def _of_most(keys: Sequence[Key], metric: str, results: Results) -> float | None:
    """The number of the first of these rows that was measured."""
    return next((found for key in keys if (found := results.value(*key, metric)) is not None), None)


def _most_regions(keys: Sequence[Key], results: Results) -> str:
    row = next((row for key in keys if (row := results.row(*key)) is not None and row.metrics), None)
    return "" if row is None else f", {row.title}"


def _plan_goals() -> Iterator[Goal]:
    applied, ten, thin_cut = ("plan-applied", SUBJECT), ("replan-ten", SUBJECT), ("cut-thin", SUBJECT)
    yield value_goal("by a plan: what is asked of the fullest link, times its capacity", 1.0, "x", applied, "fullest")
    yield value_goal("by a plan: part of the bulk that arrives in time", 0.99, "x", applied, "delivered", at_least=True)
    yield value_goal("by a plan: messages on links, away from the plan", 0.05, "x", applied, "off_plan")
    yield Goal(
        text="urgent p99 by a plan, times that by the shortest ways", limit=1.1, unit="x",
        value=lambda results: _times(results, "urgent_p99_ms"), rows=(applied,), against=(("plan-path", SUBJECT),),
    )  # fmt: skip
    for what, name in (("lost", "lost"), ("delivered twice", "doubled"), ("out of order", "disordered")):
        yield value_goal(f"ten plans in turns: messages {what}", 0.0, "", ten, name)
    yield value_goal("a planned link of 128 kbit/s falls silent: longest standstill", 5.0, "s", thin_cut, "gap_s")
    yield value_goal("a link is gone: until another plan is in force", 5.0, "s", thin_cut, "replan_s")
    for name, (title, _how) in CUTS.items():
        yield value_goal(f"a planned link dies ({title}): longest standstill", 2.0, "s", (name, SUBJECT), "gap_s")


def _times(results: Results, metric: str) -> float | None:
    before, after = (results.value(name, SUBJECT, metric) for name in ("plan-path", "plan-applied"))
    return None if before is None or after is None or not before else after / before


def _shares(axis: Axes, results: Results) -> None:
    names = {"plan-path": "shortest ways", "plan-applied": "a plan"}
    values = {what: [results.value(name, SUBJECT, what) or 0.0 for name in names] for what in ("fullest", "delivered")}
    words = {"fullest": "fullest link, times what it carries", "delivered": "bulk delivered in time"}
    series = {words[what]: found for what, found in values.items()}
    bars(axis, series, list(names.values()), {words["fullest"]: RUST, words["delivered"]: GREEN})
    limit(axis, 1.0)
    labels(axis, y="share")


def _delays(axis: Axes, results: Results) -> None:
    names = {"plan-path": "shortest ways", "plan-applied": "a plan"}
    words = {"urgent_p99_ms": "urgent p99", "bulk_p50_ms": "bulk p50"}
    series = {words[what]: [results.value(name, SUBJECT, what) or 0.0 for name in names] for what in words}
    bars(axis, series, list(names.values()), {"urgent p99": GREEN, "bulk p50": RUST})
    axis.set_yscale("log")
    axis.set_ylim(bottom=1.0)
    axis.yaxis.set_major_formatter(lambda value, _position: f"{value:,g}")
    labels(axis, y="ms (what never came counts as the whole run)")


def _hops(axis: Axes, results: Results) -> None:
    names = {"hop-qos0": "QoS 0", "hop-qos1": "QoS 1", "hop-durable": "QoS 1, durable"}
    series = {peer: [(results.value(name, peer, "rate") or 0.0) / 1e3 for name in names] for peer in ALL}
    bars(axis, series, list(names.values()), {SUBJECT: GREEN, BASELINE: RUST, "nats": SKY})
    # QoS 0 carries fifty times as much as the others, which would be flat beside it
    axis.set_yscale("log")
    axis.set_ylim(bottom=1.0)
    axis.yaxis.set_major_formatter(lambda value, _position: f"{value:,g}")
    labels(axis, y="thousand messages per second over one hop")


def _growth(axis: Axes, results: Results) -> None:
    rows = [row for row in results.rows if row.group == "growth" and row.metrics]
    series = {
        "p50": [row.metrics["suback_p50_ms"] for row in rows],
        "longest": [row.metrics["suback_max_ms"] for row in rows],
    }
    bars(axis, series, [row.title for row in rows], {"p50": GREEN, "longest": RUST})
    labels(axis, y="ms from SUBSCRIBE to SUBACK")


def _regional(axis: Axes, results: Results) -> None:
    """What does not grow with the number of regions, beside what does: each as a share of the most."""
    rows = [row for row in results.rows if row.group == "regions" and row.metrics]
    words = {"per_receiver": "links for each receiver", "hops": "links to the last", "last_ms": "10 ms to the last",
             "table_bytes": "kB known of others"}  # fmt: skip
    scales = {"last_ms": 10.0, "table_bytes": 1e3}
    counts = [int(row.workload.rpartition("-")[2]) for row in rows]
    for (what, word), colour in zip(words.items(), (GREEN, RUST, SKY, "#777777"), strict=True):
        axis.plot(counts, [row.metrics[what] / scales.get(what, 1.0) for row in rows], "o-", color=colour, label=word)
    axis.set_xscale("log", base=2)
    axis.set_xticks(counts, [f"{count:,}" for count in counts])
    axis.set_ylim(bottom=0.0)
    axis.legend(frameon=False, fontsize="small")
    labels(axis, x="brokers", y="in the unit of each line")


def _remarks(results: Results) -> Iterator[str]:
    if any(row.metrics and row.group in ("ring", *strategies_shown.TABLES) for row in results.rows):
        yield (
            "whether the ring paper's 35 to 48 % less delay, and 39 and 49 % fewer bytes, come out, and under which "
            "assumption each does: `tieline reproduce ring`, docs/papers/ring.md"
        )


SUITE: Final = Suite(
    name="overlay",
    metrics=METRICS,
    tables=TABLES,
    goals=tuple(_goals()),
    picture=Picture(
        panels=(
            group_panel("hop", "One hop", _hops),
            group_panel("regions", "Regions of 31 brokers behind gateways", _regional),
            *strategies_shown.panels(),
            group_panel("growth", "A new filter in a mesh", _growth),
            group_panel("plan", "Twelve brokers on thin links: room and delivery", _shares),
            group_panel("plan", "The same: delay", _delays),
        )
    ),
    headings=("case", "broker"),
    remarks=_remarks,
)
