"""Finds which statements the source claims and which the tests check, by reading, not by running.

A claim is an identifier in a comment, docstring or string of ``src/tieline``: ``[MQTT-3.3.4-9]``, or the clause that a
``ProtocolError`` is raised with.  ``![MQTT-…]`` marks a knowing deviation.  A check is a ``clause("…")`` call in
``tests``: as a decorator of a test, or in the ``marks`` of a ``pytest.param``.  A test that is skipped or expected to
fail checks nothing.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: ``3.1.1 MQTT-…`` is how a clause of the older standard reads inside an error message.
_TAG: Final = re.compile(r"(?P<not>!\[)?(?P<old>3\.1\.1 )?\b(?P<book>MQTT(?:311)?)-(?P<number>\d+\.\d+\.\d+-\d+)\b")
_NAME: Final = re.compile(r"test_(?P<old>v311_)?(?P<number>\d+_\d+_\d+_\d+)_")
_NOT_RUN: Final = {"skip", "xfail"}


@dataclass(slots=True)
class Harvest:
    """Identifier to the places (``path:line``) that name it, and what is wrong with a place."""

    claims: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    deviations: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    tests: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)


def read_source(folder: Path, root: Path, harvest: Harvest) -> None:
    """Add the claims and deviations in every Python file of ``folder``."""
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for match in _TAG.finditer(line):
                book = "MQTT311" if match["old"] else match["book"]
                found = harvest.deviations if match["not"] else harvest.claims
                found[f"{book}-{match['number']}"].append(f"{path.relative_to(root)}:{number}")


def read_tests(folder: Path, root: Path, harvest: Harvest) -> None:
    """Add the checks in every test module of ``folder``, and complain about names that contradict their marker."""
    for path in sorted(folder.rglob("test_*.py")):
        place = str(path.relative_to(root))
        for test in _tests(ast.parse(path.read_text(encoding="utf-8"))):
            checked = dict(_checks(test)) if not _is_left_out(test) else {}
            for id_, line in checked.items():
                harvest.tests[id_].append(f"{place}:{line}")
            named = _NAME.match(test.name)
            if named:
                book, numbers = ("MQTT311" if named["old"] else "MQTT"), named["number"].split("_")
                id_ = f"{book}-{'.'.join(numbers[:3])}-{numbers[3]}"
                if id_ not in checked:
                    harvest.faults.append(f"{place}:{test.lineno}: {test.name} does not check {id_}")


def _tests(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def _checks(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, int]]:
    for decorator in test.decorator_list:
        for node in ast.walk(decorator):
            if isinstance(node, ast.Call) and _called(node) == "clause":
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value, node.lineno


def _is_left_out(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for decorator in test.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in _NOT_RUN:
            return True
    return False


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
