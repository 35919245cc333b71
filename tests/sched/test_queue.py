from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.queue import Queue


def test_entries_leave_in_the_order_in_which_they_came() -> None:
    queue: Queue[str] = Queue(10, 100)
    for entry in "abc":
        assert queue.push(entry, 1, 5)
    assert list(queue.entries) == ["a", "b", "c"]
    assert (len(queue), queue.bytes) == (3, 15)


def test_push_says_when_the_count_is_over() -> None:
    queue: Queue[str] = Queue(2, 100)
    assert queue.push("a", 1, 1)
    assert queue.push("b", 1, 1)
    assert not queue.is_over
    assert not queue.push("c", 1, 1)
    assert queue.is_over


def test_push_says_when_the_bytes_are_over() -> None:
    queue: Queue[str] = Queue(10, 10)
    assert queue.push("a", 1, 10)
    assert not queue.is_over
    assert not queue.push("b", 1, 1)
    assert queue.is_over


def test_a_queue_of_nothing_has_no_room() -> None:
    queue: Queue[str] = Queue(0, 100)
    assert not queue.has_room(1)
    assert not queue.push("a", 1, 1)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 50)), max_size=30), st.integers(1, 20), st.integers(1, 200))
def test_room_is_what_push_would_say(entries: list[tuple[int, int]], max_messages: int, max_bytes: int) -> None:
    queue: Queue[int] = Queue(max_messages, max_bytes)
    for number, (messages, size) in enumerate(entries):
        if messages == 1:
            had_room = queue.has_room(size)
            assert queue.push(number, messages, size) == had_room
        else:
            queue.push(number, messages, size)
        assert queue.is_over == (queue.messages > max_messages or queue.bytes > max_bytes)
        if queue.is_over:
            queue.entries.pop()
            queue.taken(messages, size)
            assert not queue.is_over
    assert len(queue) <= max_messages
    assert queue.bytes <= max_bytes


def test_taken_gives_room_back() -> None:
    queue: Queue[str] = Queue(1, 10)
    queue.push("a", 1, 10)
    assert not queue.has_room(1)
    queue.entries.popleft()
    queue.taken(1, 10)
    assert queue.has_room(10)


def test_promised_room_is_for_nothing_else() -> None:
    queue: Queue[str] = Queue(3, 30)
    queue.promise(10)
    queue.promise(12)
    assert queue.has_room(8) and not queue.has_room(9)
    assert queue.push("a", 1, 8)
    assert not queue.has_room(1)
    assert not queue.push("b", 1, 1), "over its bounds while the others are on their way"
    queue.entries.pop()
    queue.taken(1, 1)
    assert queue.bounds == (3, 30)
    queue.limit(max_messages=5, max_bytes=50)
    assert queue.bounds == (5, 50)
    assert (queue.max_messages, queue.max_bytes) == (3, 28)
    for size in (10, 12):
        queue.redeem(size)
        assert queue.push("c", 1, size) or queue.may_hold()
    assert (queue.max_messages, queue.max_bytes, queue.promised, queue.promised_bytes) == (5, 50, 0, 0)


def test_clear_forgets_what_was_blocked_too() -> None:
    queue: Queue[str] = Queue(10, 100)
    queue.push("a", 1, 1)
    queue.push("b", 1, 1)
    queue.blocked.append(queue.entries.popleft())
    queue.clear()
    assert (list(queue.entries), list(queue.blocked), len(queue), queue.bytes) == ([], [], 0, 0)
