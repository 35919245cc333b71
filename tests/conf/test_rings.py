"""A broker is on a ring with all that this takes, or the settings say in a sentence what is missing or of no use."""

from __future__ import annotations

from typing import get_args

import pytest

from tieline.conf.overlay import DispatchName, Overlay, Peer, Ring
from tieline.conf.peers import broken
from tieline.conf.schema import Listener, Settings
from tieline.overlay.ring.dispatch import DISPATCHES

HERE = Listener(url="peer://127.0.0.1:1")
ON_RING = Overlay(mode="ring")


def test_a_broker_on_a_ring_listens_for_others_and_may_know_some() -> None:
    assert not list(broken(Settings(overlay=ON_RING, listener=(HERE,))))
    assert not list(broken(Settings(overlay=ON_RING, listener=(HERE,), peer=(Peer(url="peer://127.0.0.1:9"),))))


def test_only_ways_of_dispatching_that_keep_promises_are_settings() -> None:
    assert set(get_args(DispatchName)) == {name for name, make in DISPATCHES.items() if make().keeps_promises}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Settings(overlay=Overlay(ring=Ring(stabilise_s=1.0))), 'is for brokers with overlay.mode = "ring"'),
        (Settings(overlay=ON_RING), "it needs a listener with peer://host:port"),
        (
            Settings(overlay=Overlay(mode="ring", key_file="k"), listener=(Listener(url="peer://0.0.0.0:7883"),)),
            "is no address that other brokers could dial: say overlay.ring.address",
        ),
        (
            Settings(overlay=Overlay(mode="ring", ring=Ring(address="tcp://h:1")), listener=(HERE,)),
            "is no address of a broker: write peer://host:port",
        ),
        (Settings(overlay=Overlay(mode="ring", ring=Ring(address="h:1")), listener=(HERE,)), "has no scheme"),
        (
            Settings(overlay=Overlay(mode="ring", ring=Ring(address="peer+tls://h:1")), listener=(HERE,)),
            "no listener of this broker is one of those",
        ),
        (
            Settings(overlay=Overlay(mode="ring", region="west"), listener=(HERE,), data="d"),
            "cannot be on a ring",
        ),
        (
            Settings(overlay=Overlay(mode="ring", strategy="tree"), listener=(HERE,)),
            "overlay.ring.dispatch says how messages get around it",
        ),
        (
            Settings(overlay=ON_RING, listener=(HERE,), peer=(Peer(name="b", may=("all #",)),)),
            "all have the same rights and key",
        ),
    ],
)
def test_what_is_missing_or_of_no_use_is_said(settings: Settings, sentence: str) -> None:
    assert any(sentence in text for _, text in broken(settings))
