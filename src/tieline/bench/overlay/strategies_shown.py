"""How running brokers are shown by strategy: what the numbers mean, tables, goals and panels of the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tieline.bench.metrics import Metric
from tieline.bench.overlay import strategies
from tieline.bench.overlay.strategies_work import TITLES
from tieline.bench.suite.declaration import Goal, GroupTable
from tieline.bench.suite.picture import GREEN, GREY, MAUVE, OCHRE, RUST, SKY, Panel, bars, group_panel, labels
from tieline.bench.suite.results import Key, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS: Final = {
    "frame_bytes": Metric("bytes of the frames that carry it, on all links together, without TCP and IP", "B"),
    "useless": Metric("of what brokers were sent for their own clients, the share that no client wanted", "share"),
    "last_p50_ms": Metric("median time until the last receiver has it, all on this machine", "ms"),
    "known_entries": Metric("entries of others that a broker knows; on a ring, brokers or sums that it knows of", ""),
    "interest_bytes": Metric("bytes that a broker sends until all know what all want", "B"),
}
TABLES: Final = {
    f"strategies-{name}": GroupTable(
        title=f"Running brokers by strategy, one message with QoS 0 at a time: {title}",
        columns={
            "receivers": "receivers", "messages": "links crossed", "per_receiver": "each receiver",
            "frame_bytes": "bytes on links", "hops": "links to the last", "useless": "sent in vain",
            "false_positives": "wanted nothing", "last_p50_ms": "last has it, p50", "known_entries": "entries known",
            "interest_bytes": "bytes to say them", "lost": "lost", "doubled": "twice",
        },
    )
    for name, title in TITLES.items()
}  # fmt: skip
_COLOURS: Final = dict(zip(strategies.STRATEGIES, (GREEN, SKY, GREY, RUST, OCHRE, MAUVE), strict=True))


def goals() -> Iterator[Goal]:
    """Nothing is lost and nothing comes twice, whatever the strategy, with the most brokers that were measured."""
    for name, title in TITLES.items():
        keys = [
            tuple((f"strategies-{name}-{brokers}", each) for each in strategies.STRATEGIES)
            for brokers in reversed(strategies.FULL.brokers)
        ]
        for what, metric in (("lost", "lost"), ("delivered twice", "doubled")):
            yield Goal(
                text=f"running brokers{{}}, {title}, all strategies together: messages {what}", limit=0.0, unit="",
                rows=tuple(key for some in keys for key in some), detail=partial(_detail, keys),
                value=partial(_sum, keys, metric),
            )  # fmt: skip


def _sum(keys: Sequence[Sequence[Key]], metric: str, results: Results) -> float | None:
    """The sum of the first of these rows that were all measured."""
    for some in keys:
        found = [value for key in some if (value := results.value(*key, metric)) is not None]
        if len(found) == len(some):
            return sum(found)
    return None


def _detail(keys: Sequence[Sequence[Key]], results: Results) -> str:
    for some in keys:
        rows = [row for key in some if (row := results.row(*key)) is not None and row.metrics]
        if len(rows) == len(some):
            return f" ({rows[0].title})"
    return ""


def panels() -> Iterator[Panel]:
    """What a publication takes by each strategy, for each number of brokers."""
    for group, title in zip(TABLES, TITLES.values(), strict=True):
        yield group_panel(group, f"Running brokers: {title}", partial(_crossed, group))


def _crossed(group: str, axis: Axes, results: Results) -> None:
    rows = [row for row in results.rows if row.group == group and row.metrics]
    titles = list(dict.fromkeys(row.title for row in rows))
    found = {(row.title, row.peer): row.metrics["messages"] for row in rows}
    series = {each: [found.get((title, each), 0.0) for title in titles] for each in _COLOURS}
    bars(axis, series, titles, _COLOURS)
    labels(axis, y="links that a publication crosses")
