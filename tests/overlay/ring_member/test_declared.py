"""What a subscription asks of the ring holds every message that its broker would give it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tieline.conf.schema import Attribute, Event, Settings
from tieline.core.message import Burst, Message, publish_bytes
from tieline.match.events import Events
from tieline.match.where import parse
from tieline.overlay.ring.events import Event as RingEvent
from tieline.overlay.ring.events import RingSubscription
from tieline.overlay.ring.merging import Digests
from tieline.overlay.ring_member.declared import NOWHERE, Declared

SETTINGS = Settings(
    event={
        "meter": Event(
            topic="m/#",
            attributes=(
                Attribute("v", bounds=(0, 100)),
                Attribute("w", bounds=(-5, 5)),
                Attribute("on", kind="boolean"),
                Attribute("state", kind="category"),
            ),
        ),
        "words": Event(topic="t/#", attributes=(Attribute("state", kind="category"),)),
    }
)
CONDITIONS = (
    "v > 50",
    "v > 50 and w < 0",
    "on = true",
    'state = "hot"',
    'not state = "hot"',
    "x > 1",
    "v > 10 or x = 2",
)


def declared() -> Declared:
    return Declared(SETTINGS, Events(SETTINGS))


@given(
    st.sampled_from(CONDITIONS),
    st.fixed_dictionaries(
        {},
        optional={
            "v": st.floats(-10, 110, allow_nan=False),
            "w": st.floats(-10, 10, allow_nan=False),
            "on": st.booleans(),
            "state": st.sampled_from(("hot", "cold")),
            "x": st.integers(0, 3),
        },
    ),
)
def test_whatever_meets_a_condition_is_asked_for(condition: str, said: dict[str, object]) -> None:
    asking, publishing = declared(), declared()
    # the publisher's broker has met other values first, and numbers them otherwise
    publishing.places(Message(b"m/1", b'{"state": "cold"}'))
    asked = asking.subscriptions("m/+", condition)
    message = Message(b"m/1", json.dumps(said).encode())
    places = publishing.places(message)
    assert places is not None
    event = RingEvent("m/1", b"", *places[0])
    reading = Events(SETTINGS).of("m/1").read(message.payload)
    assert reading is not None
    if parse(condition).holds(reading.get):
        assert any(each.may_want(event) for each in asked)
        assert Digests(asking.spaces, 40).of(asked).wants(event)


def test_a_condition_of_which_no_type_makes_boxes_travels_as_its_filter() -> None:
    asking = declared()
    whole = (RingSubscription("m/+/x"),)
    assert asking.subscriptions("m/+/x", None) == whole
    assert asking.subscriptions("+/+/x", "v > 1") == (RingSubscription("+/+/x"),)
    assert asking.subscriptions("a/b", "v > 1") == (RingSubscription("a/b"),)
    # a type without numbers has no grid
    assert asking.subscriptions("t/1", 'state = "hot"') == (RingSubscription("t/1"),)
    assert asking.subscriptions("m/1", "v > 1 and v < 0") == ()


def test_each_message_of_a_burst_has_a_place_of_its_own() -> None:
    packets = [publish_bytes(0x30, b"m/1", 0, None, b'{"v": %d}' % value) for value in (3, 7)]
    burst = Burst(b"".join(packets), 2, len(packets[0]) - 8, b"m/1", 4, Message(b"", b"").origin, 1, 0.0, 0, 1)
    places = declared().places(burst)
    assert places is not None
    assert [place[1][0] for place in places] == [3, 7]
    assert declared().places(Message(b"a", b"x")) is None
    assert NOWHERE == ("", ())


def test_brokers_that_have_declared_something_else_have_another_fingerprint() -> None:
    other = Settings(event={"meter": SETTINGS.event["meter"]})
    assert declared().fingerprint == declared().fingerprint
    assert Declared(other, Events(other)).fingerprint != declared().fingerprint
    assert Declared(SETTINGS, Events(SETTINGS), "partitioned").fingerprint != declared().fingerprint
