"""The import graph, the drawing made of it, and the numbers of ``make shape``, on trees that are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.architecture.drawing import DUTIES, rooms_svg
from docs.architecture.imports import Imports, cycles, essential, read_imports
from docs.architecture.shape import measure
from docs.architecture.tree import SOURCE, first_sentence, tree

SMALL = Imports(
    "house",
    {
        "house": frozenset(),
        "house.attic": frozenset({"house.floor.bed", "house.cellar"}),
        "house.floor": frozenset(),
        "house.floor.bed": frozenset({"house.floor.lamp", "house.cellar"}),
        "house.floor.lamp": frozenset({"house.floor.bed"}),
        "house.cellar": frozenset(),
    },
)


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / "src" / "tieline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_children_are_taken_with_all_that_is_in_them() -> None:
    assert SMALL.children("house") == {"attic": {"floor", "cellar"}, "floor": {"cellar"}, "cellar": set()}
    assert SMALL.children("house.floor") == {"bed": {"lamp"}, "lamp": {"bed"}}
    assert list(SMALL.packages()) == ["house", "house.floor"]


def test_cycles_are_those_who_need_each_other() -> None:
    assert cycles(SMALL.children("house")) == []
    assert cycles(SMALL.children("house.floor")) == [["bed", "lamp"]]
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}) == [["a", "b", "c"], ["d", "e"]]


def test_a_need_that_follows_from_others_is_not_essential() -> None:
    assert essential({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_the_drawing_shows_every_room_once() -> None:
    picture = rooms_svg()
    for duties in DUTIES.values():
        for name in duties:
            assert f">{name}</text>" in picture


def test_a_room_without_a_duty_cannot_be_drawn() -> None:
    known = read_imports()
    with pytest.raises(SystemExit, match="'annexe'"):
        rooms_svg(Imports("tieline", {**known.of, "tieline.annexe": frozenset()}))


def test_what_is_counted(tmp_path: Path) -> None:
    long = "def long() -> None:\n" + "    print()\n" * 81
    many = "def many(a, b, c, d, e, f, g, *, h) -> None:\n    '''Too many words.'''\n"
    shared = "".join(f"first_{n} = {n}\n" for n in range(6))
    root = _write(
        tmp_path,
        {
            "__init__.py": "",
            "one.py": f"from tieline import two\n{shared}x: Any = 1  # noqa: S101, SLF001  it is so\n",
            "two.py": f"from tieline import one\n{shared}{many}y = 2  # type: ignore[x]\nz = 3  # noqa: X1 - ours\n",
            "kernels/__init__.py": "",
            "kernels/loop.py": long,
            "long.py": long,
        },
    )
    shape = measure(root)
    assert {str(path): size for path, size in shape.sizes.items()} == {
        "tieline/one.py": 8,
        "tieline/two.py": 11,
        "tieline/kernels/loop.py": 82,
        "tieline/long.py": 82,
    }
    assert shape.long_functions == ["tieline/long.py:1 long (81)"]
    assert shape.crowded_functions == ["tieline/two.py:8 many"]
    assert shape.short_docstrings == ["tieline/two.py:8 many"]
    assert (shape.any_count, shape.switched_off, shape.without_reason) == (1, 3, ["tieline/two.py:10"])
    assert shape.module_cycles == [["tieline.one", "tieline.two"]]
    assert shape.package_cycles == {"tieline": [["one", "two"]]}
    assert ("tieline/one.py:2", "tieline/two.py:2") in shape.repetitions
    text = "\n".join(shape.lines())
    assert "4 source files, 183 lines" in text
    assert "tieline.one <-> tieline.two" in text


def test_the_tree_has_what_each_file_says_of_itself(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "__init__.py": '"""A house."""',
            "door.py": '"""Opens to\nguests with ``keys``.  And more.\n\nMuch more."""\n',
            "floor/__init__.py": '"""Boards."""\n',
            "floor/rug.py": '"""Lies there"""\n',
            "data/readme.txt": "no package",
        },
    )
    assert [line.split(maxsplit=1) for line in tree(root / "src" / "tieline")] == [
        ["tieline/", "A house"],
        ["door", "Opens to guests with `keys`"],
        ["floor/", "Boards"],
        ["rug", "Lies there"],
    ]
    assert list(tree(root / "src" / "tieline"))[3].startswith("    rug ")


def test_every_module_begins_with_a_sentence() -> None:
    silent = [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if len(first_sentence(path).split()) < 3]
    assert silent == []
