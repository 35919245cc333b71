"""Revoked means out, for brokers too: who has proven itself by what is not believed any more does not stay."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kits.dial import open_socket, read_to_end
from tests.kits.patience import PATIENCE_S, until
from tests.net.test_peer_doors import Authority, exchange, secure
from tests.net.test_peer_reload import names
from tests.net.test_peers import refusals, settings
from tieline.conf.overlay import Overlay
from tieline.net.reload import reload
from tieline.pytest_plugin import BrokerThread

OLD, NEW = "the old key, sixteen bytes or more", "the new key, sixteen bytes or more"


def again(broker: BrokerThread) -> None:
    """Have a broker read its files again."""
    assert broker._loop is not None
    done = asyncio.run_coroutine_threadsafe(reload(broker._server), broker._loop).result(PATIENCE_S)
    assert done["applied"]


def links(broker: BrokerThread) -> list[int]:
    """The connections to other brokers, by a number that no other has."""
    peers = broker._server._peers
    assert peers is not None
    return broker.ask(lambda core: [id(link) for link in peers.inside.up.values()])


class Keys:
    """Two brokers with a file each, in which stand their keys."""

    def __init__(self, folder: Path) -> None:
        self.files = [folder / "hub.key", folder / "edge.key"]
        for file in self.files:
            file.write_text(OLD)

    @contextmanager
    def joined(self) -> Iterator[list[BrokerThread]]:
        hub, edge = (Overlay(key_file=str(file)) for file in self.files)
        first = settings("hub", overlay=hub)
        with BrokerThread(first, reread=lambda: first) as one:
            second = settings("edge", one.urls[1], overlay=edge)
            with BrokerThread(second, reread=lambda: second) as other:
                until(lambda: names(one) == ["edge"] and names(other) == ["hub"], "they are joined")
                yield [one, other]


def test_a_broker_with_a_key_that_is_replaced_is_out(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    with keys.joined() as (hub, edge):
        before = links(hub)
        again(hub)
        assert links(hub) == before
        keys.files[0].write_text(NEW)
        again(hub)
        assert names(hub) == []
        until(lambda: refusals(hub) > 0, "it comes again, with the old key")
        assert names(hub) == []
        keys.files[1].write_text(NEW)
        again(edge)
        until(lambda: names(hub) == ["edge"], "it has the new key")


def test_a_key_is_replaced_at_one_broker_after_the_other_and_nobody_is_refused(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    with keys.joined() as brokers:
        for text in (f"{OLD}\n{NEW}\n", f"{NEW}\n{OLD}\n", NEW):
            for file, broker in zip(keys.files, brokers, strict=True):
                file.write_text(text)
                again(broker)
                until(lambda: [*map(names, brokers)] == [["edge"], ["hub"]], "they are joined, or soon again")
        assert [*map(refusals, brokers)] == [0, 0]


def test_a_greeting_that_began_with_the_old_key_is_over(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    with keys.joined() as (hub, _), open_socket(hub.urls[1]) as stranger:
        assert stranger.recv(1_024).startswith(b"tieline-peer/1 hub ")
        keys.files[0].write_text(NEW)
        again(hub)
        assert read_to_end(stranger) == b""


@pytest.mark.parametrize("revoker", ["hub", "edge"])
def test_a_broker_of_an_authority_that_is_gone_is_out(tmp_path: Path, revoker: str) -> None:
    for folder in ("hub", "edge", "other"):
        (tmp_path / folder).mkdir()
    hub, edge, other = (Authority(tmp_path / name) for name in ("hub", "edge", "other"))
    hub_overlay = hub.overlay("hub", "127.0.0.1")
    edge_overlay = edge.overlay("edge", "127.0.0.1")
    hubs, edges = hub.path.read_text(), edge.path.read_text()
    # each believes the other's authority, which is in the file that the test changes
    hub.path.write_text(edges)
    edge.path.write_text(hubs)
    first = secure("hub", hub_overlay)
    with BrokerThread(first, reread=lambda: first) as one:
        second = secure("edge", edge_overlay, one.urls[1])
        with BrokerThread(second, reread=lambda: second) as two:
            until(lambda: names(one) == ["edge"] and names(two) == ["hub"], "they are joined")
            exchange(one, two)
            broker, authority = (one, hub) if revoker == "hub" else (two, edge)
            before, believed = links(broker), authority.path.read_text()
            authority.path.write_text(believed + other.path.read_text())
            again(broker)
            assert links(broker) == before
            authority.path.write_text(other.path.read_text())
            again(broker)
            assert names(broker) == []
            until(lambda: broker.ask(lambda core: core.account.closed["peer_tls_handshake_failed"]), "it is refused")
            assert names(broker) == []
            authority.path.write_text(believed)
            again(broker)
            until(lambda: names(one) == ["edge"] and names(two) == ["hub"], "they are joined again")
