"""The whole core against the oracle: whatever clients and networks do, everybody gets exactly what is owed."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.core.device import EXPIRY_S, Device, Fleet
from tests.core.coherence import check_routes
from tests.core.oracle import Message
from tests.kits.world import World
from tieline.wire.packets import Publish, Subscription

_DEVICES = 4
_devices = st.integers(0, _DEVICES - 1)
_qos = st.integers(0, 2)
_topics = st.sampled_from(("a", "a/b", "b/c", "/", "$d/a"))
_filters = st.sampled_from(("a", "a/b", "a/#", "+/b", "+", "#", "b/+", "/#", "$d/#"))
#: Nobody sees these but the members of groups: leading wildcards do not match them.
_shared_topics = st.sampled_from(("$q/a", "$q/b"))
_shared_filters = st.sampled_from(("$share/g/$q/a", "$share/h/$q/b"))
_windows = st.sampled_from((1, 2, 100))


class Whole(RuleBasedStateMachine):
    """Random clients connect, subscribe, publish, acknowledge late, stop reading, vanish and return."""

    fleet: Fleet

    @initialize(split=st.sampled_from((False, False, True)), cache=st.sampled_from((0, 1, 1_000)), inflight=_windows)
    def begin(self, split: bool, cache: int, inflight: int) -> None:
        self.fleet = Fleet(World(split=split, route_cache=cache, inflight=inflight), _DEVICES)
        self.sent = 0
        for device in self.fleet.devices:
            device.connect(5, is_clean=True, is_durable=True, window=100)

    def online(self, number: int) -> Device | None:
        """A connected device: the one asked for or the next one that is."""
        around = self.fleet.devices[number:] + self.fleet.devices[:number]
        return next((device for device in around if device.client is not None), None)

    @rule(number=_devices, version=st.sampled_from((4, 5)), is_clean=st.booleans(), is_durable=st.booleans(), window=_windows)
    def connect(self, number: int, version: int, is_clean: bool, is_durable: bool, window: int) -> None:
        device = self.fleet.devices[number]
        if device.client is not None and device.expiry_s == 0:
            # the take-over ends the old session first: the new one begins afresh
            self.fleet.oracle.end(device.client_id)
        device.connect(version, is_clean=is_clean, is_durable=is_durable, window=window)

    @rule(number=_devices, window=_windows)
    def resume(self, number: int, window: int) -> None:
        device = self.fleet.devices[number]
        if device.client is None:
            device.connect(5, is_clean=False, is_durable=True, window=window)

    @rule(number=_devices, says_goodbye=st.sampled_from((False, False, True)))
    def lose(self, number: int, says_goodbye: bool) -> None:
        self.fleet.devices[number].lose(says_goodbye=says_goodbye)

    @rule(number=_devices, filter_=_filters, qos=_qos, no_local=st.booleans(), handling=_qos, identifier=st.integers(0, 3))
    def subscribe(self, number: int, filter_: str, qos: int, no_local: bool, handling: int, identifier: int) -> None:
        device = self.online(number)
        if device is None or device.client is None:
            return
        wish = Subscription(filter=filter_, qos=qos)
        if device.client.version == 5:
            wish.no_local, wish.retain_handling = no_local, handling
        else:
            identifier = 0
        self.fleet.oracle.subscribe(device.client_id, wish, identifier)
        device.subscribe(wish, identifier)

    @rule(number=_devices, filter_=_shared_filters)
    def share(self, number: int, filter_: str) -> None:
        device = self.online(number)
        if device is not None:
            wish = Subscription(filter=filter_, qos=2)
            self.fleet.oracle.subscribe(device.client_id, wish, 0)
            device.subscribe(wish, 0)

    @rule(number=_devices, filter_=_filters)
    def unsubscribe(self, number: int, filter_: str) -> None:
        device = self.online(number)
        if device is not None:
            self.fleet.oracle.unsubscribe(device.client_id, filter_)
            device.unsubscribe(filter_)

    @rule(number=_devices, topic=_topics | _shared_topics, qos=_qos, retain=st.booleans(), count=st.integers(1, 4))
    def publish(self, number: int, topic: str, qos: int, retain: bool, count: int) -> None:
        device = self.online(number)
        if device is None:
            return
        for _ in range(count):
            self.sent += 1
            payload = b"%d" % self.sent
            owed = self.fleet.accept(Message(device.client_id, topic, payload, qos, retain))
            device.publish(self.fleet.oracle.messages[payload])
            self.look_for(payload, [client_id for client_id, level in owed.items() if level == 0])

    def look_for(self, payload: bytes, receivers: list[str]) -> None:
        """A QoS 0 message is with every connected receiver that reads, however full its window is."""
        for device in self.fleet.devices:
            if device.client_id in receivers and device.client is not None and device.client.is_reading:
                inbox = [packet.payload for packet in device.client.inbox if isinstance(packet, Publish)]
                assert payload in inbox, f"{device} did not get {payload!r} at once"

    @rule(number=_devices, count=st.integers(1, 8), answers=st.booleans())
    def process(self, number: int, count: int, answers: bool) -> None:
        device = self.online(number)
        if device is not None:
            device.process(count)
            if answers:
                device.acknowledge()

    @rule(number=_devices)
    def stall(self, number: int) -> None:
        client = self.fleet.devices[number].client
        if client is not None:
            client.stall()

    @rule(number=_devices)
    def read_again(self, number: int) -> None:
        client = self.fleet.devices[number].client
        if client is not None:
            client.resume()

    @rule(seconds=st.sampled_from((1, EXPIRY_S - 1, EXPIRY_S)))
    @precondition(lambda self: len(self.fleet.connected) < _DEVICES)
    def advance(self, seconds: int) -> None:
        self.fleet.advance(seconds)

    @invariant()
    def routes_are_current(self) -> None:
        check_routes(self.fleet.world.broker)

    @invariant()
    def sessions_are_where_they_should_be(self) -> None:
        assert self.fleet.world.broker.sessions.keys() == self.fleet.oracle.sessions.keys()

    def teardown(self) -> None:
        if not hasattr(self, "fleet"):
            return
        self.fleet.finish()
        broker = self.fleet.world.broker
        assert broker.queued_bytes == 0
        assert not any(session.inflight or session.inbound for session in broker.sessions.values())
        for device in self.fleet.devices:
            device.lose(says_goodbye=True)
        self.fleet.advance(EXPIRY_S)
        assert all(session.expiry_s > EXPIRY_S for session in broker.sessions.values())
        assert broker.account.closed.keys() <= {"disconnect", "connection_lost", "taken_over"}
        assert broker.account.drops.keys() <= {"offline", "session_ended", "no_member"}


def test_everybody_gets_exactly_what_is_owed() -> None:
    # the same examples in every run: a failure here is a change of ours
    run_state_machine_as_test(
        Whole, settings=settings(max_examples=80, stateful_step_count=60, derandomize=True, deadline=None)
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_everybody_gets_exactly_what_is_owed_for_a_long_time() -> None:
    run_state_machine_as_test(Whole, settings=settings(max_examples=3_000, stateful_step_count=100, deadline=None))
