from __future__ import annotations

from tieline.sim.clock import Clock
from tieline.sim.endpoint import pair
from tieline.sim.link import Way


def test_both_ends_write_and_read() -> None:
    clock = Clock()
    near, far = pair(clock, Way(delay_s=1.0), Way(delay_s=0.25))
    ready: list[tuple[str, float]] = []
    far.watch(lambda: ready.append(("far", clock.now)))
    near.watch(lambda: ready.append(("near", clock.now)))
    began = clock.now
    near.write(b"question")
    far.write(b"answer")
    clock.run_for(2.0)
    assert ready == [("near", began + 0.25), ("far", began + 1.0)]
    assert (near.read(100), far.read(100)) == (b"answer", b"question")
    assert near.round_trip_s == far.round_trip_s == 1.25


def test_who_watches_late_is_told_of_what_has_come() -> None:
    clock = Clock()
    near, far = pair(clock)
    near.write(b"x")
    clock.run_for(1)
    told: list[bytes] = []
    far.watch(lambda: told.append(far.read(10)))
    assert told == [b"x"]


def test_an_end_that_has_finished_still_reads() -> None:
    clock = Clock()
    near, far = pair(clock)
    near.write(b"last")
    near.finish()
    clock.run_for(1)
    assert (far.is_readable, far.is_over) == (True, False)
    assert far.read(10) == b"last"
    assert (far.is_over, far.is_broken) == (True, False)
    far.write(b"goodbye")
    clock.run_for(1)
    assert near.read(10) == b"goodbye"


def test_closing_with_something_unread_breaks_the_connection() -> None:
    clock = Clock()
    for unread in (b"", b"unread"):
        near, far = pair(clock)
        far.write(unread)
        clock.run_for(1)
        near.close()
        clock.run_for(1)
        assert far.is_over
        assert far.is_broken == bool(unread)


def test_a_reset_loses_both_directions_and_is_heard_at_the_other_end_alone() -> None:
    clock = Clock()
    near, far = pair(clock, Way(delay_s=1.0), Way(delay_s=1.0))
    near.write(b"lost")
    far.write(b"lost too")
    clock.run_for(0.5)
    near.reset()
    far.write(b"and this, since nobody has told")
    clock.run_for(0.5)
    assert not far.is_over
    clock.run_for(0.5)
    assert far.is_broken and far.read(10) == b""
    clock.run_for(1)
    assert not near.is_readable
    assert near.out.lost == 4
    assert far.out.lost == 8 + 31
    assert far.held == 39, "its kernel would have kept them"


def test_a_peer_behind_a_silent_line_is_written_to_until_its_buffer_is_full() -> None:
    clock = Clock()
    near, far = pair(clock, Way(buffer=1_000))
    near.out.fall_silent()
    assert near.write(bytes(600)) == 600
    room = [near.is_writable]
    assert near.write(bytes(600)) == 400
    room.append(near.is_writable)
    assert room == [True, False]
    clock.run_for(100)
    assert near.held == 1_000
    near.out.speak()
    clock.run_for(0)
    assert len(far.read(2_000)) == 1_000
