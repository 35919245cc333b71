"""What ``make shape`` prints: the sizes, cycles and repetitions of the source, as numbers that can be compared.

``python -m docs.architecture.shape DIR`` does the same for another checkout, to see what a change has done.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docs.architecture.imports import ROOT, Imports, cycles, read_imports

SMALL, LARGE = 60, 250
LONG_FUNCTION, MANY_PARAMETERS, SHORT_DOCSTRING = 80, 8, 3
#: How many lines in a row two files must share, to the letter, to count as a repetition.
REPEATED_LINES = 6
#: Loops that a compiler turns into machine code are long for a reason: it does not look into calls as a reader does.
_COMPILED = {"kernels", "loops", "kernels.py"}
#: A warning that was switched off, and what stands behind it on its line.
_OFF = re.compile(r"#\s*(noqa|type:\s*ignore)(?::\s*[A-Z0-9, ]+[0-9]|\[[^]]*\])?[ \t]*(.*)$", re.MULTILINE)


@dataclass
class Shape:
    """Everything that is counted in one tree of source files."""

    sizes: dict[Path, int] = field(default_factory=dict)
    long_functions: list[str] = field(default_factory=list)
    crowded_functions: list[str] = field(default_factory=list)
    #: Those of them beside which nobody says why.
    crowded_without_reason: list[str] = field(default_factory=list)
    short_docstrings: list[str] = field(default_factory=list)
    any_count: int = 0
    #: Modules that import it without saying what has no type.
    any_without_reason: list[str] = field(default_factory=list)
    #: Warnings that were switched off, and of these the places where nobody says why.
    switched_off: int = 0
    without_reason: list[str] = field(default_factory=list)
    module_cycles: list[list[str]] = field(default_factory=list)
    #: By package, the groups of its children that need each other.
    package_cycles: dict[str, list[list[str]]] = field(default_factory=dict)
    repetitions: list[tuple[str, str]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The report, a line for each number."""
        sizes = sorted(self.sizes.values())
        yield f"{len(sizes)} source files, {sum(sizes):,} lines"
        small, large = sum(size < SMALL for size in sizes), sum(size > LARGE for size in sizes)
        yield f"median {statistics.median(sizes):.0f} lines; {small} files under {SMALL}, {large} over {LARGE}"
        yield _counted(self.long_functions, f"functions over {LONG_FUNCTION} lines")
        verbs = sum(name.startswith("tieline/cli/") for name in self.crowded_functions)
        many = f"functions with {MANY_PARAMETERS} or more parameters, {verbs} of them verbs of the command line"
        yield _counted(self.crowded_functions, many, shown=0)
        yield _counted(self.crowded_without_reason, "of them without a reason beside them")
        yield _counted(self.short_docstrings, f"docstrings of {SHORT_DOCSTRING} words or less")
        yield f"{self.any_count} Any; {self.switched_off} noqa and type: ignore"
        yield _counted(self.any_without_reason + self.without_reason, "of them without a reason beside them")
        yield _counted([" <-> ".join(group) for group in self.module_cycles], "cycles of modules")
        around = [
            f"{package}: {' <-> '.join(group)}" for package, groups in self.package_cycles.items() for group in groups
        ]
        yield _counted(around, "packages whose parts need each other all around")
        yield _counted(
            [f"{one} ~ {other}" for one, other in self.repetitions], f"repetitions of {REPEATED_LINES} lines or more"
        )


def measure(root: Path = ROOT) -> Shape:
    """Look at every module below ``src`` of a checkout; a package's ``__init__`` counts where it has code."""
    shape, blocks = Shape(), defaultdict(list)
    for path in sorted((root / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(root / "src")
        if path.name != "__init__.py":
            shape.sizes[place] = text.count("\n")
        for found in _OFF.finditer(text):
            shape.switched_off += 1
            if not found[2].strip("#- "):
                shape.without_reason.append(f"{place}:{text.count(chr(10), 0, found.start()) + 1}")
        _look_inside(shape, place, text)
        for key, line in _windows(text):
            blocks[key].append((place, line))
    _look_around(shape, read_imports(root / "src"))
    shape.repetitions = list(_repetitions(blocks))
    return shape


def _look_inside(shape: Shape, place: Path, text: str) -> None:
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id == "Any":
            shape.any_count += 1
        if isinstance(node, ast.ImportFrom) and any(alias.name == "Any" for alias in node.names):
            has_reason = any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])
            shape.any_without_reason += [] if has_reason else [f"{place}:{node.lineno} Any"]
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        name = f"{place}:{node.lineno} {node.name}"
        docstring = ast.get_docstring(node)
        if docstring and len(docstring.split()) <= SHORT_DOCSTRING:
            shape.short_docstrings.append(name)
        if isinstance(node, ast.ClassDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno
        if length > LONG_FUNCTION and not _COMPILED & set(place.parts):
            shape.long_functions.append(f"{name} ({length})")
        arguments = node.args
        if len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) >= MANY_PARAMETERS:
            shape.crowded_functions.append(name)
            # on the line of its name, or on the one above
            if "#" not in lines[node.lineno - 1] and not lines[node.lineno - 2].lstrip().startswith("#"):
                shape.crowded_without_reason.append(name)


def _look_around(shape: Shape, imports: Imports) -> None:
    # A package and the modules in it are one thing here: `from . import name` is no cycle.
    shape.module_cycles = cycles({module: set(imported) for module, imported in imports.of.items()})
    for package in imports.packages():
        if groups := cycles(imports.children(package)):
            shape.package_cycles[package] = groups


def _windows(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each run of lines that say something, with the number of its first line; imports are alike by nature."""
    imported = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [
        (stripped, number)
        for number, line in enumerate(text.splitlines(), 1)
        if number not in imported and len(stripped := line.strip()) > 1 and not stripped.startswith(("#", '"""'))
    ]
    for begin in range(len(lines) - REPEATED_LINES + 1):
        run = lines[begin : begin + REPEATED_LINES]
        yield tuple(line for line, _number in run), run[0][1]


def _repetitions(blocks: dict[tuple[str, ...], list[tuple[Path, int]]]) -> Iterator[tuple[str, str]]:
    """One pair for each two files that share a run, however many runs they share."""
    seen: set[tuple[Path, Path]] = set()
    for places in blocks.values():
        for number, (one, line) in enumerate(places):
            for other, other_line in places[number + 1 :]:
                if one == other or (one, other) in seen:
                    continue
                seen.add((one, other))
                yield f"{one}:{line}", f"{other}:{other_line}"


def _counted(found: list[str], what: str, *, shown: int = 4) -> str:
    some = "".join(f"\n    {one}" for one in found[:shown])
    more = f"\n    and {len(found) - shown} more" if shown and len(found) > shown else ""
    return f"{len(found)} {what}{some}{more}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, metavar="DIR", help="a checkout (this one)")
    print("\n".join(measure(parser.parse_args().root.resolve()).lines()))
