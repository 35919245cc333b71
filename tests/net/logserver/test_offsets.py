"""Named readers move forward, and back only when that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieline.net.logserver import offsets
from tieline.net.logserver.offsets import Backwards, Readers, Unknown
from tieline.net.store.reading import keep_position, position


def test_forward_and_never_back(tmp_path: Path) -> None:
    some = Readers(tmp_path, None)
    assert some.positions() == {}
    some.move("spark", 10)
    some.move("spark", 10)
    with pytest.raises(Backwards) as back:
        some.move("spark", 9)
    assert back.value.position == 10 and position(tmp_path, "spark") == 10
    some.move("spark", 9, force=True)
    some.move("backup.2", 0)
    assert some.positions() == {"backup.2": 0, "spark": 9}


def test_a_configuration_says_who_reads(tmp_path: Path) -> None:
    keep_position(tmp_path, "former", 3)
    some = Readers(tmp_path, ("spark",))
    assert some.positions() == {"former": 3, "spark": None}
    with pytest.raises(Unknown, match=r"log\.readers"):
        some.move("stranger", 1)
    some.move("spark", 1)
    some.move("former", 4)
    assert some.positions() == {"former": 4, "spark": 1}


def test_without_a_configuration_there_is_an_end_to_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "MOST", 2)
    some = Readers(tmp_path, None)
    some.move("a", 1)
    some.move("b", 1)
    with pytest.raises(Unknown):
        some.move("c", 1)
    some.move("a", 2)


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 65, "ü"])
def test_names_that_would_not_be_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no name for a reader"):
        Readers(tmp_path, None).move(name, 1)


def test_what_is_no_position_is_not_listed(tmp_path: Path) -> None:
    some = Readers(tmp_path, None)
    some.move("spark", 1)
    (tmp_path / "readers" / ".spark.123").write_text("7")
    (tmp_path / "readers" / "notes~").write_text("hello")
    assert some.positions() == {"spark": 1}
