"""What ``make tree`` prints: every package and module of the source, with the sentence that it begins with.

The map in ARCHITECTURE.md has the packages; what is in them says each file itself, so no list of files can be out of
date.  ``make tree ARGS=core/inbound`` prints a part of it.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

from docs.architecture.imports import ROOT

SOURCE = ROOT / "src" / "tieline"


def tree(folder: Path = SOURCE, depth: int = 0) -> Iterator[str]:
    """A line for a package, lines for its modules, then those of the packages in it."""
    yield f"{'  ' * depth}{folder.name + '/':<24} {first_sentence(folder / '__init__.py')}"
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("__"):
            yield f"{'  ' * (depth + 1)}{path.stem:<24} {first_sentence(path)}"
    for inner in sorted(folder.iterdir()):
        if (inner / "__init__.py").is_file():
            yield from tree(inner, depth + 1)


def first_sentence(path: Path) -> str:
    """What a file says it is for: the first paragraph of its docstring up to its first full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split()).replace("``", "`")
    return paragraph.partition(". ")[0].rstrip(".")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="", metavar="PACKAGE", help="a part of it, such as core/inbound")
    print("\n".join(tree(SOURCE / parser.parse_args().folder)))
