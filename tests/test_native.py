"""Compiled modules: they are those of the list, and never older than their source."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import native_build
from tieline import native
from tieline.bench.machine import own_version


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with two modules, one of them in a folder, and the record of both."""
    monkeypatch.setattr(native, "_PACKAGE", tmp_path)
    (tmp_path / "core").mkdir()
    for name in ("a.py", "core/b.py"):
        (tmp_path / name).write_text(f"NAME = {name!r}\n")
    record, text = native.record(["a.py", "core/b.py"])
    (tmp_path / record).write_text(text)
    return tmp_path


def test_what_has_not_changed_is_not_stale(package: Path) -> None:
    assert native.is_compiled()
    native.check()


def test_a_source_that_has_changed_is_named_with_what_to_do(package: Path) -> None:
    (package / "core" / "b.py").write_text("NAME = 'c'\n")
    with pytest.raises(native.StaleLibrary, match=r"^tieline/core/b\.py changed .*'make compile'.*'make uncompile'"):
        native.check()


def test_a_source_that_is_gone_counts_as_changed(package: Path) -> None:
    (package / "core" / "b.py").unlink()
    (package / "a.py").write_text("")
    with pytest.raises(native.StaleLibrary, match=r"^tieline/a\.py and 1 more changed"):
        native.check()


def test_without_a_record_nothing_is_compiled(package: Path) -> None:
    record, _ = native.record([])
    (package / record).unlink()
    (package / "a.py").write_text("")
    native.check()
    assert not native.is_compiled()


def test_every_module_of_the_list_is_compiled_or_none_is() -> None:
    names = [".".join(module.with_suffix("").parts) for module in native_build.modules()]
    files = [str(import_module(name).__file__) for name in names]
    assert {file.endswith(tuple(EXTENSION_SUFFIXES)) for file in files} == {native.is_compiled()}
    assert (" compiled on " in own_version()) == native.is_compiled()


def test_every_pattern_of_the_list_names_something() -> None:
    package = native_build.SOURCE / "tieline"
    for pattern in (*native_build.COMPILED, *native_build.INTERPRETED):
        assert any(package.glob(pattern)), pattern


def test_what_a_compiled_module_imports_from_is_a_source_of_it_too() -> None:
    sources = native_build.sources()
    assert "core/message.py" in sources, "which is compiled"
    assert "core/ports.py" in sources and "conf/urls.py" in sources, "whose constants may be in the code"
    assert "cli/main.py" not in sources


def test_no_module_of_the_list_defines_a_struct() -> None:
    """A struct that is compiled loses what its class statement says of it: its tag, and that it is frozen."""
    for module in native_build.modules():
        tree = ast.parse((native_build.SOURCE / module).read_text())
        bases = {ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases}
        assert not bases & {"Struct", "msgspec.Struct"}, module
