"""``docs/robustness.md`` speaks of names, settings and tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tieline.conf.schema import Auth, Limits, Mqtt
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.wire.reason import Reason

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "robustness.md"
_SOURCE = _ROOT / "src" / "tieline"


class Row(NamedTuple):
    """One line of a table, and the file whose tests its section names."""

    file: str
    abuse: str
    happens: str
    name: str
    limit: str
    test: str


class Input(NamedTuple):
    """One line of the tables about input of other kinds; its test names the file, too."""

    input: str
    gets: str
    test: str


def table(columns: int) -> Iterator[tuple[str, list[str]]]:
    """The lines of the tables with so many columns, each with the file that its section names."""
    file = ""
    for line in _PAGE.read_text().splitlines():
        if line.startswith("Tests in `"):
            file = quoted(line)[0]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == columns and cells[-1] != "test" and set(cells[0]) != {"-"}:
            yield file, cells


def rows() -> Iterator[Row]:
    return (Row(file, *cells) for file, cells in table(5))


def inputs() -> Iterator[Input]:
    return (Input(*cells) for _file, cells in table(3))


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_there_is_a_row_for_every_abuse_and_every_input() -> None:
    assert len(list(rows())) > 30
    assert len(list(inputs())) > 50


def test_every_name_exists() -> None:
    literals = {
        name for path in _SOURCE.glob("[cn][oe][rt]*/**/*.py") for name in re.findall(r'"([a-z_]+)"', path.read_text())
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
    settings = {*Auth.__struct_fields__, *Limits.__struct_fields__, *Mqtt.__struct_fields__}
    for row in rows():
        for setting in quoted(row.limit):
            assert setting.partition(" ")[0] in settings, row


def test_every_test_exists() -> None:
    for row in rows():
        _check_tests(row.test, row.file)
    for each in inputs():
        assert each.test.startswith("`"), f"{each.test} names no file"
        _check_tests(each.test, "")


def _check_tests(cell: str, file: str) -> None:
    """Files between backquotes, each followed by parts of the names of tests in it."""
    is_proved = False
    for word in re.split(r",?\s+", cell):
        if word.startswith("`"):
            file = word.strip("`")
            file = file if "/" in file else f"tests/robust/{file}"
        else:
            names = re.findall(r"^def (test_\w+)", (_ROOT / file).read_text(), re.MULTILINE)
            assert any(word in name for name in names), f"no test of {file} has {word} in its name"
            is_proved = True
    assert is_proved, f"no test is named in {cell}"


def test_every_drop_and_hold_that_abuse_can_cause_has_a_row() -> None:
    mentioned = {name for row in rows() for name in quoted(row.name)}
    # these have other causes than abuse: a client away, a rule, an answer, an end, an operator
    others = {
        Drop.EXPIRED,
        Drop.TOO_LARGE,
        Drop.OFFLINE,
        Drop.DENIED,
        Drop.CLASS_TOO_LARGE,
        Drop.NO_MEMBER,
        Drop.REJECTED,
        Drop.UNCONFIRMED,
        Drop.UNKNOWN_LEVEL,
        Drop.REPEATED,
        Drop.MALFORMED_ONCE,
        Drop.FORGOTTEN,
        Drop.OUT_OF_TURN,
        Drop.LINK_FULL,
    }
    assert {drop.value for drop in Drop} - mentioned == {drop.value for drop in others}
    assert {Hold.QUEUE_FULL.value, Hold.NOT_READING.value} <= mentioned
