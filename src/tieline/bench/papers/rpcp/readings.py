"""The readings of RPCP beside each other: what filtering, covering, advertisements and fusion each are worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Panel, Request, Sheet, Tables
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.rpcp.runs import NAMES, OURS, PRINTED, Job, carry_out, loaded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOAD: Final = 800.0
#: What is varied beside the reading: a name for the page, and the parameters.
_SETTINGS: Final[dict[str, dict[str, float]]] = {
    "as before": {},
    "restless": {"subscriptions": 40, "change_s": 5.0, "fastest_mps": 5.0},
    "regional": {"sensing_m": 60.0},
    "three witnesses": {"witnesses": 3},
}
_READINGS: Final = {
    "as before": (PRINTED, "rpcp-literal", OURS, "rpcp-filter-optimal", "rpcp-filter-uncovered", "rpcp-peer"),
    "restless": (
        OURS, "rpcp-filter-optimal", "rpcp-filter-uncovered", "rpcp-peer", "rpcp-peer-optimal", "rpcp-peer-uncovered",
    ),
    "regional": (OURS, "rpcp-peer", "rpcp-peer-advertised"),
    "three witnesses": (OURS, "rpcp-filter-fusion"),
}  # fmt: skip


def measure(request: Request) -> list[Table]:
    """Every reading in the settings that tell it from others."""
    jobs = [
        # three witnesses report the same happening, which makes three events of it
        Job(name, loaded(_LOAD / more.get("witnesses", 1), **more), seed, label=setting)
        for setting, more in _SETTINGS.items()
        for seed in request.seeds(quick=3, full=5)
        for name in _READINGS[setting]
    ]
    rows = []
    for job, found in carry_out(jobs, request):
        energy = found.energy_j
        rows.append((
            job.label, job.protocol, job.seed, found.success,
            energy["send_data"] + energy["receive_data"] + energy["match"],
            energy["send_control"] + energy["receive_control"],
            found.counters["sent_data"], found.counters["sent_control"], sum(found.tables.values()),
        ))  # fmt: skip
    columns = {
        "setting": "setting", "protocol": "reading", "seed": "seed",
        "success": "share of wanted deliveries that took place", "data_j": "energy for events, J",
        "control_j": "energy for control frames, J", "data": "event frames", "control": "control frames",
        "entries": "entries of all tables at the end",
    }  # fmt: skip
    return [Table("readings", columns, rows)]


def panels(tables: Tables) -> dict[str, Panel]:
    """Energy for events and for control, setting by setting."""

    def panel_of(setting: str) -> Panel:
        table = tables["readings"].where(setting=setting)

        def panel(axis: Axes) -> None:
            names = table.words("protocol")
            data = [table.median("data_j", protocol=name) for name in names]
            control = [table.median("control_j", protocol=name) for name in names]
            axis.barh(range(len(names)), data, color=drawing.COLOURS["ours"], label="events")
            axis.barh(range(len(names)), control, left=data, color=drawing.COLOURS["second"], label="control")
            for place, name in enumerate(names):
                chosen = table.where(protocol=name)
                sums = [a + b for a, b in zip(chosen.column("data_j"), chosen.column("control_j"), strict=True)]
                axis.plot(sums, [place] * len(sums), ".", color="#222222", markersize=3.5, alpha=0.7)
            axis.set_yticks(range(len(names)), [NAMES[name] for name in names], fontsize=7.5)
            axis.set_ylim(len(names) - 0.4, -0.6)
            axis.margins(x=0.12)
            drawing.labels(axis, x="J of all sensors, without idling")

        return panel

    return {f"{setting.capitalize()}": panel_of(setting) for setting in _SETTINGS}


def sheet(tables: Tables) -> Sheet:
    """The medians over the seeds, as figures."""
    table = tables["readings"]
    lines = [
        [setting, NAMES[name], f"{100 * chosen.median('success'):.1f}", f"{chosen.median('data'):,.0f}",
         f"{chosen.median('control'):,.0f}", f"{chosen.median('entries'):,.0f}"]
        for setting in table.words("setting")
        for name in table.where(setting=setting).words("protocol")
        for chosen in [table.where(setting=setting, protocol=name)]
    ]  # fmt: skip
    headings = ("setting", "reading", "success, %", "event frames", "control frames", "entries")
    return Sheet(headings=headings, lines=lines, words=2)


def _saved(table: Table, setting: str, better: str, worse: str, column: str) -> list[float]:
    one, other = (table.where(setting=setting, protocol=name).column(column) for name in (better, worse))
    return [1 - a / b for a, b in zip(one, other, strict=True)]


def claims(tables: Tables) -> Iterator[Claim]:
    """What covering, advertisements and fusion are said to save."""
    table = tables["readings"]
    for better, worse, setting, says, why in (
        (OURS, "rpcp-filter-uncovered", "as before",
         "Covering reduces the subscriptions that are sent and kept.",
         "ten topics and ten boxes of each sink leave little to cover: it saves where sinks want more, or change more"),
        (OURS, "rpcp-filter-uncovered", "restless",
         "The same, with four times the subscriptions, which change ten times as often.",
         "a wide box covers only boxes of its own topic"),
        ("rpcp-peer", "rpcp-peer-uncovered", "restless",
         "The same, where every link is told of everything behind the others.",
         "a wide box covers only boxes of its own topic"),
        ("rpcp-peer-advertised", "rpcp-peer", "regional",
         "Advertisements keep subscriptions where they can be met.",
         "topics have to be sensed in some places only"),
    ):  # fmt: skip
        entries, control = (_saved(table, setting, better, worse, column) for column in ("entries", "control"))
        yield Claim(
            where=f"covering, {setting}" if "advertised" not in better else f"advertisements, {setting}",
            paper_says=says,
            we_measure=f"{verdicts.percent(entries)} fewer entries and {verdicts.percent(control)} fewer control "
            "frames",
            judgement=verdicts.above(MARGIN_SAVED, [min(pair) for pair in zip(entries, control, strict=True)]),
            why=why,
        )
    fused = _saved(table, "three witnesses", "rpcp-filter-fusion", OURS, "data")
    yield Claim(
        where="fusion",
        paper_says="Heads fuse what several sensors report, and reduce the data on the air.",
        we_measure=f"{verdicts.percent(fused)} fewer event frames where three sensors report each happening",
        judgement=verdicts.above(MARGIN_SAVED, fused),
        why="it does nothing where every happening has one witness",
    )


#: Less is noise.
MARGIN_SAVED: Final = 0.1
