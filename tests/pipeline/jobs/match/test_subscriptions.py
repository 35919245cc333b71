"""Subscriptions to replay: how they are written, and which cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieline.pipeline.jobs.match.subscriptions import NoSubscription, read, subscription


def test_one_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "wishes"
    file.write_text("grid/+/pcc?voltage > 250\n\n#\n  $where/changed(state)/plant/#  \n")
    first, second, third = read(file)
    assert (first.id, first.filter) == ("grid/+/pcc?voltage > 250", "grid/+/pcc")
    assert (second.filter, second.predicate, second.is_stateful) == ("#", None, False)
    assert (third.filter, third.is_stateful) == ("plant/#", True)


def test_with_names(tmp_path: Path) -> None:
    file = tmp_path / "wishes.json"
    file.write_text('[{"id": "high", "filter": "grid/+?v > 250", "where": "f < 50"}, {"id": "all", "filter": "#"}]')
    high, everything = read(file)
    assert (high.id, high.filter) == ("high", "grid/+")
    assert high.predicate is not None
    assert high.predicate.names == ("v", "f")
    assert everything.predicate is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$share/g/a/b", "shared subscription"),
        ("$share/g/$where/v > 1/a", "shared subscription"),
        ("a/#/b", "no topic filter"),
        ("a?v >", "cannot be understood"),
        ("$where/v > 1", "cannot be understood"),
        ("", "no topic filter"),
    ],
)
def test_what_cannot_be_replayed(text: str, said: str) -> None:
    with pytest.raises(NoSubscription, match=said):
        subscription(text)


def test_a_file_that_cannot_be_meant(tmp_path: Path) -> None:
    file = tmp_path / "wishes"
    for content, said in (
        ("a\n$share/g/b", "line 2: .*shared"),
        ("a\na", 'two subscriptions are called "a"'),
        ('[{"filter": "a"}]', "holds no subscriptions"),
        ('[{"id": "a", "filter": "a", "were": "v > 1"}]', "were"),
    ):
        file.write_text(content)
        with pytest.raises(NoSubscription, match=said):
            read(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(NoSubscription, match="no text"):
        read(file)
    with pytest.raises(NoSubscription, match="cannot read"):
        read(tmp_path / "nothing")
