"""What one of several joined brokers retains, all of them retain: whoever comes gets the newest, wherever."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import line, publish, settings, subscribe
from tieline.conf.schema import Settings
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


def retained(broker: BrokerThread) -> dict[str, bytes]:
    return broker.ask(
        lambda core: {
            message.topic.decode(): message.payload for message in core.retained.match("#") if message is not None
        }
    )


def has(broker: BrokerThread, topic: str, payload: bytes | None) -> bool:
    return retained(broker).get(topic) == payload


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_whoever_subscribes_anywhere_gets_what_was_retained_right_before(qos: int) -> None:
    with line("a", "b", "c") as (a, b, c), dial(a.urls[0], "source") as source:
        for number in range(3):
            topic = f"state/{number}"
            publish(source, topic, b"on", qos, retain=True)
            if not qos:
                until(partial(has, a, topic, b"on"), "it is retained where it was accepted")
            with dial((c, b, a)[number].urls[0], "late") as late:
                subscribe(late, topic, 0)
                got = late.expect(Publish)
                assert (got.topic, got.payload, got.retain) == (topic, b"on", True)
        for broker in (a, b, c):
            until(partial(has, broker, "state/2", b"on"), "all brokers retain it")


def test_what_is_cleared_is_cleared_everywhere() -> None:
    with line("a", "b", "c") as (a, b, c), dial(a.urls[0], "one") as one, dial(c.urls[0], "other") as other:
        publish(one, "state", b"on", 1, retain=True)
        until(partial(has, c, "state", b"on"), "it has come")
        publish(other, "state", b"", 1, retain=True)
        for broker in (a, b, c):
            until(partial(has, broker, "state", None), "it is gone")
        assert a.ask(lambda core: core.routes.neighbours.retaining.convergence.gone_bytes) > 0  # type: ignore[attr-defined]


def test_a_condition_is_asked_of_what_comes_late_and_groups_get_nothing_of_it() -> None:
    with BrokerThread(settings("a")) as a, dial(a.urls[0], "source") as source:
        for number in range(40):
            publish(source, f"grid/{number}", b'{"voltage": %d}' % (200 + number), 1, retain=True)
        # these subscribe before anybody knows of what is retained
        with (
            BrokerThread(settings("b")) as b,
            dial(b.urls[0], "low") as low,
            dial(b.urls[0], "all") as all_,
            dial(b.urls[0], "member") as member,
        ):
            subscribe(low, "grid/+?voltage<203", 0)
            subscribe(all_, "grid/#", 0)
            subscribe(member, "$share/g/grid/#", 0)
            with BrokerThread(settings("c", a.urls[1], b.urls[1])):
                assert {low.expect(Publish).topic for _ in range(3)} == {"grid/0", "grid/1", "grid/2"}
                assert len({all_.expect(Publish).topic for _ in range(40)}) == 40
                publish(source, "grid/x", b'{"voltage": 1}', 1)
                assert [client.expect(Publish).topic for client in (low, all_, member)] == ["grid/x"] * 3


def test_what_is_kept_survives_a_restart_with_its_version(tmp_path: Path) -> None:
    def stored(name: str, *urls: str) -> Settings:
        return msgspec.structs.replace(settings(name, *urls), data=str(tmp_path / name))

    with BrokerThread(settings("b")) as b, dial(b.urls[0], "other") as other:
        with BrokerThread(stored("a", b.urls[1])) as a, dial(a.urls[0], "source") as source:
            publish(source, "state", b"old", 1, retain=True)
            publish(source, "gone", b"old", 1, retain=True)
            until(partial(has, b, "gone", b"old"), "it has come")
        publish(other, "state", b"new", 1, retain=True)
        publish(other, "gone", b"", 1, retain=True)
        with BrokerThread(stored("a", b.urls[1])) as a:
            until(partial(has, a, "state", b"new"), "the newer write has come")
            until(partial(has, a, "gone", None), "what was cleared is cleared")
        assert retained(b) == {"state": b"new"}
