"""A digest holds wherever one of its conditions does, seldom elsewhere, and is refused where it can be none."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.kits.world import World
from tieline.conf.schema import Attribute, Event, Settings
from tieline.match.merge.digest import BadDigest
from tieline.overlay.interests.digests import digest_of, is_digest, read_digest
from tieline.overlay.interests.entries import Entry, Form, Said, Terms
from tieline.overlay.joined import Joined
from tieline.wire.packets import Publish

CONDITIONS = 5_000


def _many(random: Random, width: float) -> np.ndarray:
    """Boxes as rows of v from, v to, w from, w to; sides are up to twice the width."""
    found = np.array([[random.random() * 100 for _ in range(2)] for _ in range(CONDITIONS)])
    sides = np.array([[random.random() * 200 * width for _ in range(2)] for _ in range(CONDITIONS)])
    return np.column_stack([found[:, 0], found[:, 0] + sides[:, 0], found[:, 1], found[:, 1] + sides[:, 1]])


def test_five_thousand_conditions_are_a_few_thousand_bytes_and_little_is_forwarded_in_vain() -> None:
    random = Random(1)
    boxes = _many(random, 0.01)
    text, held = digest_of(f"{a!r} <= v <= {b!r} and {c!r} <= w <= {d!r}" for a, b, c, d in boxes.tolist())
    assert len(held) == CONDITIONS
    assert len(text) < 32_768
    digest = read_digest(text)
    wanted = forwarded = 0
    for _ in range(1_500):
        v, w = random.random() * 100, random.random() * 100
        is_wanted = bool(((boxes[:, 0] <= v) & (v <= boxes[:, 1]) & (boxes[:, 2] <= w) & (w <= boxes[:, 3])).any())
        is_forwarded = digest.holds({"v": v, "w": w}.get)
        assert is_forwarded >= is_wanted
        wanted += is_wanted
        forwarded += is_forwarded
    assert wanted < forwarded <= 1.5 * wanted


@examples(200)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 127))
def test_what_is_no_digest_is_refused_or_can_be_asked(data: bytes, at: int, char: int) -> None:
    good, _ = digest_of(["1 <= v <= 2 and w > 3", "v = 7 and w < 1"])
    assert is_digest(good)
    spoiled = good[:at] + chr(char) + good[at + 1 :]
    for text in (f"\x01v\x02{data!r}", spoiled):
        try:
            digest = read_digest(text)
        except BadDigest:
            continue
        digest.holds({"v": 1.5, "w": 4.0}.get)


def test_what_cells_cannot_tell_is_in_no_digest() -> None:
    for condition in ('mode = "x"', "not v > 3", "v > 3 or w > 3", '"a" < v', "changed(v)", ""):
        others = [condition, "v = 1 and w = 1", "v = 2 and w = 2", "v = 3 and w = 3"]
        _, held = digest_of(others)
        assert held == others[1:], condition


def test_a_broker_that_says_a_digest_gets_what_lies_in_its_cells() -> None:
    event = Event(topic="p/+", attributes=(Attribute(name="v", bounds=(0, 100)), Attribute(name="w")))
    world = World(Settings(name="here", event={"p": event}))
    joined = Joined(world.broker, life=1, incarnation=11)
    far = joined.node.number_of("far")
    assert joined.node.carrier.heard(far, 22, 1)
    text, _ = digest_of(["10 <= v <= 20", "90 <= v <= 95"])
    fingerprint = joined.remote.meanings.fingerprint("p/+")
    sender = joined.node.carrier.sender
    publisher = world.client("publisher")
    numbers = iter(range(1, 100))

    def owed(*payloads: bytes) -> int:
        before = sender.unfinished
        for payload in payloads:
            publisher.send(Publish(topic="p/x", payload=payload, qos=1, packet_id=next(numbers)))
            joined.end_turn(world.now)
        return sender.unfinished - before

    said = {Entry("p/+", "", text, fingerprint): Terms(2)}
    joined.node.interests.learn(Said(far, Form.WHOLE, 1, 0, said))
    assert owed(b'{"v": 15}') == owed(b'{"v": 92, "w": 3}') == 1
    assert owed(b'{"v": 50}', b'{"v": "15"}', b'{"w": 15}', b"no JSON") == 0
    # one that cannot be read is no reason to send less than is wanted
    said = {Entry("p/+", "", "\x01nonsense", fingerprint): Terms(2)}
    joined.node.interests.learn(Said(far, Form.WHOLE, 2, 0, said))
    assert owed(b'{"v": 50}') == 1


def test_later_conditions_are_added_on_the_grid_of_a_digest() -> None:
    text, held = digest_of(["v > 1", "v < 0"])
    assert held == ["v > 1", "v < 0"]
    assert read_digest(text).names == ("v",)
    later, held = digest_of(["v = 0.5"], text)
    assert held == ["v = 0.5"]
    both = read_digest(later)
    assert both.canonical == later
    assert both.holds({"v": 0.5}.get)
    assert both.holds({"v": 1e300}.get)
    assert both.holds({"v": -1e300}.get)
    assert "cells of v" in repr(both)
