"""A broker is a gateway with all that this takes, or the settings say in a sentence what is missing."""

from __future__ import annotations

import pytest

from tieline.conf.overlay import Overlay, Peer
from tieline.conf.peers import broken
from tieline.conf.schema import Listener, Settings

INSIDE = Listener(url="peer://127.0.0.1:1")
OUTSIDE = Listener(url="peer://127.0.0.1:2", gateway=True)
CLIENTS = Listener(url="tcp://127.0.0.1:3")
WEST = Overlay(region="west")


def test_a_gateway_with_both_sides_and_a_directory_is_one() -> None:
    peers = (Peer(url="peer://127.0.0.1:9", name="h@east", gateway=True),)
    assert not [*broken(Settings(data="d", overlay=WEST, listener=(INSIDE, OUTSIDE), peer=peers))]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(listener=(INSIDE, OUTSIDE)), "only a gateway is joined with other regions"),
        (Settings(peer=(Peer(url="peer://127.0.0.1:9", gateway=True),)), "only a gateway is joined"),
        (Settings(data="d", overlay=WEST, listener=(INSIDE, OUTSIDE, CLIENTS)), "is for clients"),
        (Settings(data="d", overlay=WEST, listener=(INSIDE,)), "needs a listener or a peer with gateway = true"),
        (Settings(data="d", overlay=WEST, listener=(OUTSIDE,)), "without gateway = true"),
        (Settings(overlay=WEST, listener=(INSIDE, OUTSIDE)), "no data directory"),
        (
            Settings(data="d", overlay=WEST, listener=(INSIDE, OUTSIDE), peer=(Peer(name="h", gateway=True),)),
            "is known as h@",
        ),
        (
            Settings(
                data="d",
                overlay=WEST,
                listener=(INSIDE, OUTSIDE),
                peer=(Peer(name="h@east", gateway=True, may=("all #",)),),
            ),
            "cannot be said by topic",
        ),
        (
            Settings(data="d", overlay=WEST, listener=(INSIDE, Listener(url="peer+unix:///x", gateway=True))),
            "a socket in the file system",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings: Settings, words: str) -> None:
    assert any(words in sentence for _path, sentence in broken(settings))
