"""What may be published at a broker, as settings say it."""

from __future__ import annotations

import pytest

from tieline.conf.overlay import Overlay
from tieline.conf.published import broken, published
from tieline.conf.schema import Event, Settings

PCC = {"pcc": Event(topic="microgrid/+/pcc")}


def test_it_is_anything_some_filters_or_what_is_declared() -> None:
    assert published(Settings()) is None
    assert published(Settings(overlay=Overlay(publishes=("a/#", "b")))) == frozenset({"a/#", "b"})
    assert published(Settings(overlay=Overlay(publishes=()))) == frozenset()
    settings = Settings(overlay=Overlay(publishes="events"), event=PCC)
    assert published(settings) == frozenset({"microgrid/+/pcc"})
    assert not [*broken(settings)]


@pytest.mark.parametrize(
    ("overlay", "words"),
    [
        (Overlay(publishes="events"), "no event type is declared"),
        (Overlay(publishes=("a/#/b",)), "is no topic filter"),
        (Overlay(publishes=("$SYS/#",)), "begin with $"),
        (Overlay(publishes=tuple(f"a/{number}" for number in range(257))), "256 can be told"),
        (Overlay(publishes=("a",), region="west"), "leave overlay.publishes to these"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(overlay: Overlay, words: str) -> None:
    sentences = [sentence for _path, sentence in broken(Settings(overlay=overlay))]
    assert any(words in sentence for sentence in sentences), sentences
