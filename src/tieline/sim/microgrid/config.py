"""The broker's configuration for a world: classes by topic, event types with their bounds, what the log captures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tieline.sim.microgrid.messages import LEVELS, MessageKind
from tieline.sim.microgrid.world import World


class _Attribute(NamedTuple):
    name: str
    kind: str = "number"
    bounds: tuple[float, float] | None = None
    unit: str = ""
    values: Sequence[str] = ()


_TIME: Final = _Attribute("time", "timestamp")
_DEVICE: Final = _Attribute("device", "category")


def text(
    world: World,
    *,
    data: Path | str,
    name: str = "microgrid",
    listen: Sequence[str] = ("tcp://127.0.0.1:1883",),
    readers: Sequence[str] = (),
    events: bool = True,
) -> str:
    """A TOML file for ``tieline serve --config``.

    ``readers`` are names under which programs read the log; ``events`` also logs what happens in the broker.
    """
    lines = [f"name = {_quoted(name)}", f"data = {_quoted(str(data))}"]
    for url in listen:
        lines += ["", "[[listener]]", f"url = {_quoted(url)}"]
    lines += ["", "[log]", f"capture = {_list(['microgrid/#'])}", f"readers = {_list(readers)}"]
    lines += ['events = "on"'] if events else []
    for kind, level in LEVELS.items():
        lines += ["", "[[class]]", f"name = {_quoted(kind)}", f"filter = {_quoted(_filter(kind))}", f"level = {level}"]
    for kind, attributes in _types(world).items():
        lines += ["", f"[event.{kind}]", f"topic = {_quoted(_filter(kind))}"]
        if kind == "reading":
            lines += [f"routing = {_list(['voltage', 'frequency'])}"]
        for attribute in attributes:
            lines += ["", f"[[event.{kind}.attributes]]", *_attribute(attribute)]
    return "\n".join(lines) + "\n"


def _types(world: World) -> dict[MessageKind, tuple[_Attribute, ...]]:
    node = _Attribute("node", "category", values=world.nodes)
    most_kw = 2 * sum(abs(each.kilowatts) for each in world.network.elements) / len(world.nodes)
    most_a = most_kw / (3**0.5 * float(world.network.kilovolts.min()))
    power = (-round(most_kw), round(most_kw))
    return {
        "reading": (
            _TIME,
            node,
            _Attribute("voltage", bounds=(0, 400), unit="V"),
            _Attribute("current", bounds=(0, round(most_a)), unit="A"),
            _Attribute("power", bounds=power, unit="kW"),
            _Attribute("reactive", bounds=power, unit="kvar"),
            _Attribute("frequency", bounds=(40, 60), unit="Hz"),
        ),
        "incident": (
            _TIME,
            node,
            _Attribute("kind", "category", values=("dip", "swell", "interruption")),
            _Attribute("residual", bounds=(0, 400), unit="V"),
            _Attribute("duration", bounds=(0, 3_600), unit="s"),
        ),
        "fault": (
            _TIME,
            node,
            _Attribute("kind", "category", values=("phase-ground", "phase-phase", "three-phase")),
            _Attribute("current", bounds=(0, 50_000), unit="A"),
        ),
        "protection": (
            _TIME,
            _DEVICE,
            _Attribute("action", "category", values=("trip", "reclose", "lockout")),
            _Attribute("element", "category"),
        ),
        "command": (
            _TIME,
            _DEVICE,
            _Attribute("action", "category", values=("open", "close", "shed", "restore", "setpoint")),
            _Attribute("value", bounds=power, unit="kW"),
        ),
    }


def _filter(kind: MessageKind) -> str:
    return f"microgrid/+/+/{kind}"


def _attribute(attribute: _Attribute) -> Iterator[str]:
    yield f"name = {_quoted(attribute.name)}"
    yield f"kind = {_quoted(attribute.kind)}"
    if attribute.bounds is not None:
        yield f"bounds = [{attribute.bounds[0]}, {attribute.bounds[1]}]"
    if attribute.unit:
        yield f"unit = {_quoted(attribute.unit)}"
    if attribute.values:
        yield f"values = {_list(attribute.values)}"


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, values))}]"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # a JSON text is a TOML basic string
