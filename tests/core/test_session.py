from __future__ import annotations

from tests.kits.sessions import lone_session
from tests.kits.world import World


def test_a_session_says_what_it_is() -> None:
    assert repr(lone_session("c", 10, 1_000)) == "<Session c away, 0 queued, 0 in flight>"
    world = World()
    client = world.client("c")
    assert repr(client.connection.session) == "<Session c connected, 0 queued, 0 in flight>"


def test_packet_ids_run_from_1_to_65535() -> None:
    session = lone_session("c", 10, 1_000)
    assert [session.next_id() for _ in range(3)] == [1, 2, 3]
    session.last_id = 65_534
    assert [session.next_id() for _ in range(2)] == [65_535, 1]


def test_packet_ids_in_use_are_passed_over() -> None:
    session = lone_session("c", 10, 1_000)
    session.inflight = dict.fromkeys([*range(1, 5), 65_535])
    assert session.next_id() == 5
    session.last_id = 65_534
    assert session.next_id() == 5
