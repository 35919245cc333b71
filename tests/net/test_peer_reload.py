"""A reload of what is said of other brokers: who is new is dialled, who is gone let go, and links change while up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any  # Any: what a test asks of a broker

import msgspec
import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import node_of, publish, settings, subscribe
from tests.net.test_reload import Served
from tieline.conf.overlay import Overlay, Peer
from tieline.conf.schema import Settings
from tieline.core.broker import Broker
from tieline.net.listener import ListenError
from tieline.net.peer_settings import differences, read_secrets
from tieline.net.reload import compare, merge
from tieline.overlay.joined import Joined
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Publish
from tieline.wire.reason import Reason

ALONE = """\
name = "edge"
data = "{data}"
[[listener]]
url = "tcp://127.0.0.1:0"
[[listener]]
url = "peer://127.0.0.1:0"
"""
JOINED = """\
[[peer]]
url = "{url}"
name = "hub"
"""


@pytest.fixture
def hub() -> Iterator[BrokerThread]:
    with BrokerThread(settings("hub")) as running:
        yield running


def cost_at(hub: BrokerThread) -> list[int]:
    """What the other broker says that its link costs."""

    def look(core: Any) -> list[int]:
        node = node_of(core)
        state = node.membership.states.get(node.number_of("edge"))
        return [] if state is None else list(state.neighbours.values())

    return hub.ask(look)


def test_peers_come_change_and_go_without_a_restart(hub: BrokerThread, tmp_path: Path) -> None:
    alone, joined = ALONE.format(data=tmp_path / "d"), JOINED.format(url=hub.urls[1])
    (tmp_path / "d").mkdir(mode=0o700)
    edge = Served(tmp_path, alone)
    try:
        edge.write(alone + joined)
        told = edge.reload()
        assert (told.returncode, told.stderr) == (0, "")
        assert f"peer[hub]: not set -> dialled at {hub.urls[1]}  (applies now)" in told.stdout
        until(lambda: cost_at(hub) == [1], "the link is up")
        edge.write(alone + joined + "cost = 9\ncapacity = 1_000_000\ncompress = true\n")
        told = edge.reload()
        for line in ("cost: 1 -> 9", "capacity: none -> 1000000", "compress: False -> True"):
            assert f"peer[hub].{line}" in told.stdout
        until(lambda: cost_at(hub) == [9], "the other broker has heard what the link costs")
        edge.write(alone)
        told = edge.reload()
        assert f"peer[hub]: dialled at {hub.urls[1]} -> not set  (applies now)" in told.stdout
        until(lambda: names(hub) == [], "the link is down")
    finally:
        edge.close()


def renew(broker: BrokerThread, new: Settings) -> None:
    peers = broker._server._peers
    assert peers is not None
    broker.ask(lambda core: peers.renew(new, read_secrets(new), monotonic()))


def names(broker: BrokerThread) -> list[str]:
    peers = broker._server._peers
    assert peers is not None
    return broker.ask(lambda core: sorted(peers.up))


def test_who_has_another_key_or_is_not_known_any_more_greets_again(hub: BrokerThread, tmp_path: Path) -> None:
    key, other = tmp_path / "one", tmp_path / "other"
    key.write_text("sixteen bytes or more")
    other.write_text("another sixteen bytes")

    def said(path: Path, **more: Any) -> Settings:
        old = settings("edge", hub.urls[1])
        return msgspec.structs.replace(old, peer=(*old.peer, Peer(name="hub", key_file=str(path), **more)))

    there = msgspec.structs.replace(settings("hub"), peer=(Peer(name="edge", key_file=str(key)),))
    renew(hub, there)
    with BrokerThread(said(key)) as edge:
        until(lambda: names(hub) == ["edge"], "both have the key")
        renew(edge, said(key, may=("all a/#",)))
        until(lambda: names(edge) == ["hub"], "with rights it greets again")
        renew(edge, said(other))
        until(lambda: names(edge) == [], "one of them has another key")
        renew(hub, msgspec.structs.replace(there, peer=(Peer(name="edge", key_file=str(other)),)))
        until(lambda: names(edge) == ["hub"], "both have the other key")
        renew(hub, settings("hub"))
        until(lambda: names(hub) == [], "it is not known any more, and has no key of its own")


def test_what_is_said_of_the_overlay_changes_live_but_for_what_all_depends_on() -> None:
    old = Settings(peer=(Peer(url="peer://127.0.0.1:7883"),))
    new = msgspec.structs.replace(old, overlay=Overlay(key_file="key", cluster="b"), peer=(Peer(name="x"),))
    assert {change.key: change.is_live for change in compare(old, new)} == {
        "overlay.key_file": True,
        "overlay.cluster": False,
        "peer[peer://127.0.0.1:7883]": True,
        "peer[x]": True,
    }
    merged = merge(old, new)
    assert merged.peer == new.peer
    assert merged.overlay == Overlay(key_file="key")


def test_a_broker_that_is_alone_needs_a_restart_to_be_joined() -> None:
    old, new = Settings(), Settings(peer=(Peer(url="peer://127.0.0.1:7883"),))
    assert [(change.key, change.is_live) for change in compare(old, new)] == [("peer", False)]
    assert merge(old, new).peer == ()


def test_a_key_that_cannot_be_used_is_a_sentence_before_anything_is_changed(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("short")
    for path, text in (("missing", "cannot be read"), ("short", "at least 16 bytes")):
        with pytest.raises(ListenError, match=text):
            read_secrets(Settings(overlay=Overlay(key_file=str(tmp_path / path))))
    assert list(differences((), ())) == []


def declarations_at(broker: BrokerThread) -> dict[str, frozenset[str] | None]:
    return broker.ask(lambda core: joined_at(core).grants.declarations())


def spared_at(broker: BrokerThread) -> set[str]:
    return broker.ask(lambda core: {entry.filter for entry in joined_at(core).grants.sparing.spared})


def joined_at(core: Broker) -> Joined:
    assert isinstance(core.routes.neighbours, Joined)
    return core.routes.neighbours


def test_what_nobody_publishes_is_not_told_until_somebody_may(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o700)
    declares = '[overlay]\npublishes = ["{}"]\n'
    with BrokerThread(settings("hub", overlay=Overlay(publishes=("grid/#",)))) as hub:
        alone, joined = ALONE.format(data=tmp_path / "d"), JOINED.format(url=hub.urls[1])
        edge = Served(tmp_path, alone + joined + declares.format("site/+"))
        try:
            until(lambda: declarations_at(hub) == {"edge": frozenset({"site/+"})}, "the hub has heard what is declared")
            with dial(hub.urls[0]) as reader, dial(edge.urls[0]) as writer:
                subscribe(reader, "grid/1", 1)
                until(lambda: spared_at(hub) == {"grid/1"}, "the edge is not told what cannot be met there")
                writer.send(Publish(topic="grid/1", payload=b"x", qos=1, packet_id=7))
                assert writer.expect(Puback).reason == Reason.NOT_AUTHORIZED
                edge.write(alone + joined + declares.format("grid/+"))
                assert edge.reload().returncode == 0
                # at once: whoever does not know of it yet is sent everything
                publish(writer, "grid/1", b"y", 1)
                assert reader.expect(Publish).payload == b"y"
                until(lambda: spared_at(hub) == set(), "the edge is told")
                publish(writer, "grid/1", b"z", 1)
                reader.send(Puback(packet_id=1))
                assert reader.expect(Publish).payload == b"z"
        finally:
            edge.close()
