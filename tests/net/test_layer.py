"""Two layers as one: what goes through, in which order, and what an error leaves behind."""

from __future__ import annotations

import pytest

from tieline.net.layer import LayerError, Stack


class _Brackets:
    """A layer that puts everything in brackets of its own; a question mark is an error."""

    def __init__(self, left: str, right: str, *, is_ready: bool = True) -> None:
        self._left, self._right = left.encode(), right.encode()
        self._said = b""
        self.is_ready = is_ready
        self.is_over = False
        self.is_costly = not is_ready
        self.waiting = 0
        self.work = 0
        self._rest = b""

    @property
    def has_more(self) -> bool:
        return bool(self._rest)

    def take_work(self) -> int:
        work, self.work = self.work, 0
        return work

    def received(self, data: bytes) -> bytes:
        # nine bytes in one go
        data, self._rest = (self._rest + data)[:9], (self._rest + data)[9:]
        good, question, _ = data.partition(b"?")
        inside = good.replace(self._left, b"").replace(self._right, b"")
        if question:
            raise LayerError(f"no_{self._left.decode()}", "a question mark", inside)
        return inside

    def wrap(self, data: bytes) -> bytes:
        return self._left + data + self._right

    def pending(self) -> bytes:
        said, self._said = self._said, b""
        return said

    @property
    def held(self) -> int:
        return len(self._said)

    @property
    def has_pending(self) -> bool:
        return bool(self._said)

    def farewell(self) -> bytes:
        return b"bye" + self._left

    def say(self, words: bytes) -> None:
        self._said += words


@pytest.fixture
def outer() -> _Brackets:
    return _Brackets("(", ")")


@pytest.fixture
def inner() -> _Brackets:
    return _Brackets("[", "]")


@pytest.fixture
def stack(outer: _Brackets, inner: _Brackets) -> Stack:
    return Stack(outer, inner)


def test_bytes_go_through_both(stack: Stack) -> None:
    assert stack.wrap(b"x") == b"([x])"
    assert stack.received(b"([x])") == b"x"


def test_the_inner_layer_is_not_asked_about_nothing(stack: Stack, inner: _Brackets) -> None:
    assert stack.received(b"()") == b""


def test_the_outer_layer_speaks_first_and_protects_what_the_inner_says(
    stack: Stack, outer: _Brackets, inner: _Brackets
) -> None:
    outer.say(b"hello ")
    inner.say(b"inside")
    assert stack.has_pending is True
    assert stack.pending() == b"hello (inside)"
    assert (stack.has_pending, stack.pending()) == (False, b"")


def test_nothing_of_the_inner_layer_is_said_before_it_is_protected(inner: _Brackets) -> None:
    outer = _Brackets("(", ")", is_ready=False)
    stack = Stack(outer, inner)
    inner.say(b"secret")
    outer.say(b"hello")
    assert stack.pending() == b"hello"
    assert b"bye[" not in stack.farewell()
    assert not stack.is_ready


def test_the_goodbyes_from_the_inside_out(stack: Stack) -> None:
    assert stack.farewell() == b"(bye[)bye("


def test_ready_when_both_are_and_over_when_either_is(stack: Stack, outer: _Brackets, inner: _Brackets) -> None:
    assert (stack.is_ready, stack.is_over) == (True, False)
    inner.is_ready = False
    outer.is_over = True
    assert (stack.is_ready, stack.is_over) == (False, True)


@pytest.mark.parametrize("words", [b"(?", b"([?"])
def test_an_error_of_the_outer_layer_keeps_its_name(stack: Stack, words: bytes) -> None:
    with pytest.raises(LayerError) as caught:
        stack.received(words)
    assert caught.value.name == "no_(" and caught.value.before == b""


def test_what_came_before_an_error_went_through_both(stack: Stack) -> None:
    with pytest.raises(LayerError) as caught:
        stack.received(b"([good])?")
    assert caught.value.before == b"good"


def test_what_one_of_two_layers_did_not_look_at_is_looked_at_later(outer: _Brackets, inner: _Brackets) -> None:
    stack = Stack(outer, inner)
    assert stack.received(b"([abc]def)ghijkl") == b"abcdef"
    assert stack.has_more
    assert stack.received(b"") == b"ghijkl"
    assert not stack.has_more


def test_nothing_that_made_sense_is_lost_to_an_error(outer: _Brackets, inner: _Brackets) -> None:
    inner._rest = b"0123456789abcdef"
    with pytest.raises(LayerError) as caught:
        Stack(outer, inner).received(b"(ghi)?")
    assert caught.value.before == b"0123456789abcdefghi"


def test_work_and_words_of_two_layers_are_added(outer: _Brackets, inner: _Brackets) -> None:
    outer.work, inner.work, outer.waiting, inner.waiting = 3, 4, 10, 20
    stack = Stack(outer, inner)
    assert stack.take_work() == 7
    assert stack.take_work() == 0
    assert stack.waiting == 30
    assert not stack.is_costly
    outer.is_costly = True
    assert stack.is_costly
