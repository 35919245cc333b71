"""Draw the rooms of the house from the imports: ``docs/architecture/rooms.svg``, written by ``make docs``.

A box stands above everything that it needs: the packages in the layers of the contract in ``pyproject.toml``, the
rooms of the core one row above the highest of those that they need.  Only arrows that do not follow from others are
drawn, so that the picture stays readable, and none to the lowest row, which everybody may need.  Nothing in it changes
unless an import between two rooms comes or goes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from html import escape
from itertools import groupby

from docs.architecture.imports import ROOT, Imports, essential, read_imports

#: What each room is for, in a few words; a room without a line here cannot be drawn.
DUTIES = {
    "tieline": {
        "access": "who may",
        "bench": "measures",
        "cli": "the command",
        "compiling": "loops as machine code",
        "conf": "settings",
        "core": "one broker, no I/O",
        "extras": "optional libraries",
        "instance_document": "what is to be planned, as a file",
        "log": "what the log keeps",
        "match": "who wants it",
        "native": "compiled or not",
        "net": "sockets, disks, clocks",
        "overlay": "many brokers as one",
        "pipeline": "tables, on Spark",
        "plan": "which link carries what",
        "pytest_plugin": "a broker for tests",
        "sched": "what goes next",
        "sim": "virtual time, worlds",
        "version": "a number",
        "web": "HTTP",
        "wire": "bytes and packets",
    },
    "tieline.core": {
        "account": "counters and names",
        "allowance": "limits of a client",
        "holdings": "what is kept in memory, and for whom",
        "answers": "why, trace, top",
        "backlog": "waits under congestion",
        "spill": "waits in the store alone",
        "broker": "opens the doors",
        "client": "Connection and Session",
        "durable": "facts and journal",
        "figures": "numbers about it",
        "inbound": "bytes to handlers",
        "message": "what travels",
        "outbound": "queues to bytes",
        "ports": "what it calls outward",
        "receiver": "what a route leads to",
        "restore": "begin where it ended",
        "handover": "sessions that move",
        "elsewhere": "who else keeps sessions",
        "rooms": "makes all of them",
        "routing": "topic to receivers",
        "states": "what may follow what",
        "timers": "deadlines",
        "work": "how much in one turn",
    },
}
_TITLES = {
    "tieline": "The packages: each needs only what lies below it",
    "tieline.core": "Inside core: the rooms and the nouns",
}
_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 172, 46, 16, 40, 24
_STYLE = """
  .title { font: 600 17px system-ui, sans-serif; fill: #1f2937 }
  .name { font: 600 14px ui-monospace, monospace; fill: #111827 }
  .duty { font: 12px system-ui, sans-serif; fill: #4b5563 }
  .box { fill: #eef4fb; stroke: #7aa2cc; rx: 7 }
  .need { stroke: #94a3b8; stroke-width: 1.3; fill: none }
  .page { fill: #ffffff }
"""


def rooms_svg(imports: Imports | None = None) -> str:
    """The whole picture: one panel for the packages, and beside it one for the rooms of the core."""
    imports = read_imports() if imports is None else imports
    left, height = 0, 0
    body: list[str] = []
    for parent, duties in DUTIES.items():
        needs = {name: wanted for name, wanted in imports.children(parent).items() if not name.startswith("__")}
        if missing := needs.keys() - duties.keys():
            raise SystemExit(f"docs/architecture/drawing.py: say in DUTIES what {sorted(missing)} of {parent} is for.")
        rows = _layers() if parent == "tieline" else _rows(needs)
        width = max(len(row) for row in rows) * (_BOX_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN
        body += _panel(parent, left, width, rows, essential(needs))
        left += width
        height = max(height, _MARGIN + 40 + len(rows) * (_BOX_HEIGHT + _GAP_Y))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left} {height}" width="{left}" height="{height}">'
    arrow = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    tip = f'<defs>{arrow}<path d="M0,0 L8,4 L0,8 z" fill="#94a3b8"/></marker></defs>'
    page = f'<rect class="page" width="{left}" height="{height}"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", tip, page, *body, "</svg>", ""])


def _layers() -> list[list[str]]:
    """The packages by the layers that import-linter holds them to."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"tieline\.(\w+)", layer) for layer in layers]


def _rows(needs: dict[str, set[str]]) -> list[list[str]]:
    """The rooms by height, the highest first: a room stands one row above the highest of those that it needs."""
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            heights[name] = 1 + max((height(other) for other in needs.get(name, ())), default=-1)
        return heights[name]

    ordered = sorted(needs, key=lambda name: (-height(name), name))
    return [list(row) for _height, row in groupby(ordered, key=height)]


def _panel(parent: str, left: int, width: int, rows: list[list[str]], needs: dict[str, set[str]]) -> Iterator[str]:
    yield f'<text class="title" x="{left + _MARGIN}" y="{_MARGIN + 8}">{escape(_TITLES[parent])}</text>'
    unmarked = rows[-1] if parent == "tieline" else ()
    places: dict[str, tuple[int, int]] = {}
    for number, row in enumerate(rows):
        x = left + (width - len(row) * (_BOX_WIDTH + _GAP_X) + _GAP_X) // 2
        for name in row:
            places[name] = x, _MARGIN + 36 + number * (_BOX_HEIGHT + _GAP_Y)
            x += _BOX_WIDTH + _GAP_X
    for name, (x, y) in places.items():
        yield from (_arrow(x, y, *places[other]) for other in sorted(needs[name]) if other not in unmarked)
    for name, (x, y) in places.items():
        middle = x + _BOX_WIDTH // 2
        yield f'<rect class="box" x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/>'
        yield f'<text class="name" text-anchor="middle" x="{middle}" y="{y + 20}">{escape(name)}</text>'
        yield f'<text class="duty" text-anchor="middle" x="{middle}" y="{y + 37}">{escape(DUTIES[parent][name])}</text>'


def _arrow(x: int, y: int, other_x: int, other_y: int) -> str:
    """A curve from the bottom of a box to the top of another, steep at both ends so that it passes between boxes."""
    begin_x, begin_y = x + _BOX_WIDTH // 2, y + _BOX_HEIGHT
    end_x, end_y = other_x + _BOX_WIDTH // 2, other_y - 2
    bend = (end_y - begin_y) // 2
    curve = f"C{begin_x},{begin_y + bend} {end_x},{end_y - bend} {end_x},{end_y}"
    return f'<path class="need" marker-end="url(#tip)" d="M{begin_x},{begin_y} {curve}"/>'
