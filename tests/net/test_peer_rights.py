"""Real brokers of which one may not read or publish everything: not even with the right key."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import node_of, publish, reaches, refusals, settings, subscribe
from tieline.conf.overlay import Overlay, Peer
from tieline.core.account import Drop
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


def test_what_a_peer_may_not_read_is_never_sent_to_it_whoever_accepted_it() -> None:
    guarded = msgspec.structs.replace(settings("a"), peer=(Peer(name="b", may=("read open/#", "write cmd/+")),))
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(guarded))
        b = stack.enter_context(BrokerThread(settings("b", a.urls[1])))
        c = stack.enter_context(BrokerThread(settings("c", a.urls[1])))
        for broker in (a, b, c):
            until(partial(reaches, broker, 2), "all are joined")
        reader = stack.enter_context(dial(b.urls[0], "reader"))
        near, far = (stack.enter_context(dial(each.urls[0], "source")) for each in (a, c))
        subscribe(reader, "#", 1)
        for source in (near, far):
            for qos in (0, 1):
                publish(source, "secret/1", b"-", qos)
                publish(source, "open/1", b"+", qos)
                assert reader.expect(Publish).topic == "open/1"
        assert a.ask(lambda core: node_of(core).counts.withheld) == 2
        # what was accepted at the guarded broker itself was not even made for it
        assert b.ask(lambda core: node_of(core).counts.missing) <= 2
        subscribe(near, "#", 0)
        writer = stack.enter_context(dial(b.urls[0], "writer"))
        publish(writer, "grid/1", b"-", 1)
        publish(writer, "cmd/1", b"+", 1)
        assert near.expect(Publish).topic == "cmd/1"
        assert a.ask(lambda core: (core.account.drops[Drop.DENIED], node_of(core).counts.denied)) == (1, 1)


def test_a_peer_has_a_key_of_its_own_that_is_good_for_its_name_alone(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.write_bytes(b"shared by all " * 4)
    own.write_bytes(b"of b and a alone" * 4)
    guarded = msgspec.structs.replace(
        settings("a", overlay=Overlay(key_file=str(shared))),
        peer=(Peer(name="b", key_file=str(own), may=("read open/#",)),),
    )
    with BrokerThread(guarded) as a, ExitStack() as stack:
        for name, key in (("b", shared), ("d", own)):
            before = refusals(a)
            stack.enter_context(BrokerThread(settings(name, a.urls[1], overlay=Overlay(key_file=str(key)))))
            until(lambda before=before: refusals(a) > before, "it is refused")  # type: ignore[misc]
        with BrokerThread(settings("b", a.urls[1], overlay=Overlay(key_file=str(own)))) as b:
            until(partial(reaches, b, 1), "the right key for the right name is let in")


def test_the_cost_of_a_link_is_that_of_its_settings() -> None:
    with BrokerThread(settings("a")) as a:
        dear = msgspec.structs.replace(settings("b"), peer=(Peer(url=a.urls[1], cost=7),))
        with BrokerThread(dear) as b:
            until(partial(reaches, b, 1), "they are joined")
            assert b.ask(lambda core: list(node_of(core).membership.neighbours.values())) == [7]
