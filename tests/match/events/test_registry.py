"""Which event type a topic belongs to, and what is loaded for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.topics import filters, names
from tieline.conf.schema import Attribute, Content, Event, Settings
from tieline.match.events import UNTYPED, Events, EventType, ExtraNeeded
from tieline.wire.topics import matches

VALUE = (Attribute("v"),)


@given(st.lists(filters, max_size=5), names)
def test_a_topic_belongs_to_the_first_type_that_claims_it(claims: list[str], topic: str) -> None:
    declared = {f"e{number}": Event(topic=claim, attributes=VALUE) for number, claim in enumerate(claims)}
    events = Events(Settings(event=declared))
    first = next((name for name, event in declared.items() if matches(event.topic, topic)), "untyped")
    assert events.of(topic).name == first


def test_a_type_is_as_declared() -> None:
    declared = Event(topic="a/+", attributes=VALUE, payload="number", routing=("v",), order=4)
    event = Events(Settings(event={"e": declared})).types["e"]
    assert (event.name, event.topic, event.attributes, event.routing, event.order) == ("e", "a/+", VALUE, ("v",), 4)
    assert event.rows([b"5"]) == [[5.0]]


def test_untyped_topics_have_the_configured_size() -> None:
    events = Events(Settings(content=Content(untyped_bytes=5)))
    assert events.of("anything").read(b'"123"') is not None
    assert events.of("anything").read(b'"1234"') is None
    assert UNTYPED.read(b'"' + b"x" * 65_535 + b'"') is None
    assert UNTYPED.attributes == ()


@pytest.mark.parametrize(("payload", "library"), [("cbor", "cbor2"), ("sparkplug", "google.protobuf")])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(
    payload: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tieline.match.events import sparkplug_schema

    sparkplug_schema.payload_class.cache_clear()
    for name in [*sys.modules]:
        if name == library or name.startswith(f"{library}."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ExtraNeeded, match=r"pip install 'tieline\[payloads\]'"):
        EventType("e", "t", VALUE, payload=payload)  # type: ignore[arg-type]


def test_small_installations_load_nothing_heavy() -> None:
    program = (
        "import sys; from tieline.match.events import Events; from tieline.conf.schema import *; "
        "Events(Settings(event={'e': Event(topic='t', attributes=(Attribute('v'),))})).of('t').rows([b'{}']); "
        "print(sorted({'numpy', 'numba', 'cbor2', 'google.protobuf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
