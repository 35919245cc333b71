"""``docs/robustness.md`` speaks of names, settings and tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tieline.conf.schema import Limits, Mqtt
from tieline.core.account import Drop
from tieline.core.connection import Hold
from tieline.wire.reason import Reason

_HERE = Path(__file__).parent
_PAGE = _HERE.parents[1] / "docs" / "robustness.md"
_SOURCE = _HERE.parents[1] / "src" / "tieline"


class Row(NamedTuple):
    """One line of a table, and the file whose tests its section names."""

    file: str
    abuse: str
    happens: str
    name: str
    limit: str
    test: str


def rows() -> Iterator[Row]:
    file = ""
    for line in _PAGE.read_text().splitlines():
        if line.startswith("Tests in `"):
            file = Path(quoted(line)[0]).name
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] != "abuse" and set(cells[0]) != {"-"}:
            yield Row(file, *cells)


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_there_is_a_row_for_every_abuse() -> None:
    assert len(list(rows())) > 30


def test_every_name_exists() -> None:
    literals = {
        name for path in _SOURCE.glob("[cn][oe][rt]*/*.py") for name in re.findall(r'"([a-z_]+)"', path.read_text())
    }
    closings = {reason.name.lower() for reason in Reason} | literals
    closings |= {f"refused_{reason.name.lower()}" for reason in Reason}
    known = closings | {drop.value for drop in Drop} | {hold.value for hold in Hold} | {"routes/resets"}
    for row in rows():
        for name in quoted(row.name):
            assert name in known, row
        kind = row.name.partition(" ")[0]
        assert kind in ("closed", "dropped", "held", "counter", "refused", "(none)", "(none:"), row


def test_every_setting_exists() -> None:
    settings = {*Limits.__struct_fields__, *Mqtt.__struct_fields__}
    for row in rows():
        for setting in quoted(row.limit):
            assert setting.partition(" ")[0] in settings, row


def test_every_test_exists() -> None:
    tests = {path.name: re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE) for path in _HERE.glob("*.py")}
    for row in rows():
        file = row.file
        for word in re.split(r",?\s+", row.test):
            if word.startswith("`"):
                file = word.strip("`")
            else:
                assert any(word in test for test in tests[file]), f"no test of {file} has {word} in its name"


def test_every_drop_and_hold_that_abuse_can_cause_has_a_row() -> None:
    mentioned = {name for row in rows() for name in quoted(row.name)}
    # these have other causes than abuse: a client away, a rule, an answer, an end
    others = {
        Drop.EXPIRED,
        Drop.TOO_LARGE,
        Drop.OFFLINE,
        Drop.SESSION_ENDED,
        Drop.DENIED,
        Drop.CLASS_TOO_LARGE,
        Drop.NO_MEMBER,
        Drop.REJECTED,
    }
    assert {drop.value for drop in Drop} - mentioned == {drop.value for drop in others}
    assert {Hold.QUEUE_FULL.value, Hold.NOT_READING.value} <= mentioned
