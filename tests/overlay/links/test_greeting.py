"""Both ends of a greeting, byte by byte and with everything that can be wrong."""

from __future__ import annotations

import pytest

from tieline.overlay.links.greeting import Greeting, Refusal, Self

KEY, NEXT = b"0123456789abcdef", b"the next key, as long"


def _pair(one: Self, other: Self) -> tuple[Greeting, Greeting]:
    return Greeting(one, "11" * 16, has_dialled=True), Greeting(other, "22" * 16, has_dialled=False)


def _exchange(one: Greeting, other: Greeting) -> None:
    for _ in range(3):
        for sender, receiver in ((one, other), (other, one)):
            out, sender.out = sender.out, b""
            for byte in out:
                assert receiver.take(bytes((byte,))) == b""


@pytest.mark.parametrize("keys", [(), (KEY,)])
def test_two_brokers_of_one_cluster_and_key_know_each_other(keys: tuple[bytes, ...]) -> None:
    one, other = _pair(Self("a", "home", keys), Self("b", "home", keys))
    _exchange(one, other)
    assert one.is_over
    assert other.is_over
    assert (one.peer, other.peer) == ("b", "a")
    assert one.take(b"what comes behind it") == b"what comes behind it"


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (Self("b", "away", (KEY,)), "broker b is of the cluster away, and broker a of home"),
        (Self("a", "home", (KEY,)), "both brokers are called a: give one of them another --name"),
        (Self("b", "home", (b"another key, as long",)), "broker b has another key"),
        (Self("b", "home", ()), "broker b has no key"),
    ],
)
def test_others_are_refused_in_a_sentence(other: Self, sentence: str) -> None:
    one, far = _pair(Self("a", "home", (KEY,)), other)
    with pytest.raises(Refusal, match=sentence):
        one.take(far.out)
        far.take(one.out.partition(b"\n")[0] + b"\n")
        one.take(far.out.partition(b"\n")[2])


def test_a_proof_said_back_is_no_proof() -> None:
    one = Greeting(Self("a", "home", (KEY,)), "11" * 16, has_dialled=True)
    one.take(b"tieline-peer/1 b home " + b"33" * 16 + b"\n")
    with pytest.raises(Refusal, match="another key"):
        one.take(one.out.partition(b"\n")[2])


def test_a_refusal_of_the_other_end_is_not_answered() -> None:
    one = Greeting(Self("a", "home", (KEY,)), "11" * 16, has_dialled=True)
    with pytest.raises(Refusal, match="we are full") as refused:
        one.take(b"no we are full\n")
    assert refused.value.is_theirs


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ((KEY, NEXT), (KEY, NEXT)),
        ((NEXT, KEY), (KEY, NEXT)),
        ((NEXT, KEY), (NEXT,)),
        ((KEY, NEXT), (KEY,)),
    ],
)
def test_while_a_key_is_replaced_all_know_each_other(ours: tuple[bytes, ...], theirs: tuple[bytes, ...]) -> None:
    one, other = _pair(Self("a", "home", ours), Self("b", "home", theirs))
    _exchange(one, other)
    assert one.is_over and other.is_over
    # each knows by which key the other one has proven itself: the first that it has
    assert (one.key, other.key) == (theirs[0], ours[0])


def test_a_broker_with_the_old_key_alone_is_refused_by_those_who_have_only_the_new_one() -> None:
    one, other = _pair(Self("a", "home", (NEXT,)), Self("b", "home", (KEY, NEXT)))
    with pytest.raises(Refusal, match="broker b has another key"):
        _exchange(one, other)
