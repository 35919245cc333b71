"""What stands in front of a parcel: for which groups it is, for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.core.receiver import Share
from tieline.overlay.frames.fields import BadFrame, put, put_bytes
from tieline.overlay.frames.naming import (
    ELSEWHERE,
    MOST_GROUPS,
    Address,
    opened,
    put_addresses,
    put_several,
    read_addresses,
)
from tieline.overlay.frames.parcel import only_allowed
from tieline.overlay.receivers.addressing import Addressing, Handing

NAMES = {1: "a", 2: "b", 3: "c"}
#: QoS 1 messages of p about x and y, as in :mod:`tieline.overlay.frames.parcel`.
_X, _Y = put(1, 1) + put_bytes(b"x") + put_bytes(b"1"), put(1, 1) + put_bytes(b"y") + put_bytes(b"2")
INNER = put(0, 1) + put_bytes(b"p") + _X + _Y

_texts = st.text(st.characters(codec="utf-8"), max_size=8)
_addresses = st.builds(
    Address,
    st.booleans(),
    st.lists(st.builds(Share, _texts, _texts), min_size=1, max_size=4).map(tuple),
    st.lists(_texts, max_size=3).map(tuple),
    st.booleans(),
)


@given(st.dictionaries(_texts, _addresses, min_size=1, max_size=4), st.integers(0, 2), st.binary(max_size=20))
def test_addresses_are_read_as_they_were_written(addresses: dict[str, Address], qos: int, inner: bytes) -> None:
    assert read_addresses(put_addresses(addresses, qos) + inner) == (addresses, inner)


@given(st.binary(max_size=60))
def test_any_bytes_are_parcels_or_refused(data: bytes) -> None:
    for parcel in (data, b"\x02" + data, b"\x03" + data):
        try:
            for address, inner in opened(parcel, "a"):
                assert address is None or len(address.shares) <= MOST_GROUPS
                assert len(inner) <= len(parcel)
        except BadFrame:
            pass


def test_who_is_not_addressed_takes_it_for_no_group() -> None:
    parcel = put_addresses({"b": Address(False, (Share("g", "x"),))}, 1) + INNER
    assert list(opened(parcel, "a")) == [(None, INNER)]
    assert list(opened(parcel, "b")) == [(Address(False, (Share("g", "x"),)), INNER)]
    assert list(opened(INNER, "b")) == [(None, INNER)]


def test_several_stand_in_the_place_of_one_and_none_may() -> None:
    named = put_addresses({"": Address(False, (Share("g", "x"),))}, 1) + INNER
    assert [inner for _, inner in opened(put_several([INNER, named]), "a")] == [INNER, INNER]
    assert list(opened(ELSEWHERE, "a")) == []


@pytest.mark.parametrize(
    "parcel",
    [
        put_several([put_several([INNER])]),
        put_addresses({"": Address(True, (Share("g", "x"),))}, 1) * 2 + INNER,
        put_addresses({"": Address(True, (Share("g", "x"),) * (MOST_GROUPS + 1))}, 1) + INNER,
        put_addresses({"": Address(True, ())}, 1) + INNER,
        put_several([INNER]) + b"x",
        put(2, 1, 1) + put_bytes(b"a") + put(8, 0, 0),
    ],
)
def test_what_nobody_writes_is_refused(parcel: bytes) -> None:
    with pytest.raises(BadFrame):
        list(opened(parcel, "a"))


def test_what_a_peer_may_not_read_is_taken_out_behind_addresses_too() -> None:
    front = put_addresses({"b": Address(False, (Share("g", "#"),))}, 1)
    for parcel, expected in (
        (front + INNER, front + INNER.removesuffix(_Y)),
        (put_several([INNER, front + INNER]), None),
    ):
        kept, removed = only_allowed(parcel, lambda topic: topic == b"x")
        found = [inner for _, inner in opened(kept, "b")]
        assert all(b"y" not in inner.removeprefix(put(0, 1) + put_bytes(b"p")) for inner in found)
        assert len(found) == len(list(opened(parcel, "b")))
        assert removed[b"y"] == len(found)
        assert expected is None or [address for address, _ in opened(kept, "b")] == [Address(False, (Share("g", "#"),))]
    assert only_allowed(front + INNER, lambda topic: False)[0] == b""
    assert only_allowed(front + INNER, lambda topic: True) == (front + INNER, {})
    assert only_allowed(ELSEWHERE, lambda topic: False) == (ELSEWHERE, {})


def test_groups_of_one_item_are_gathered_by_destination() -> None:
    addressing = Addressing()
    assert not addressing
    addressing.add(1, Share("g", "x"))
    addressing.add(1, Share("h", "#"))
    addressing.add(2, Share("k", "x"))
    assert addressing
    [(to, front)] = addressing.take([1, 3], 1, NAMES)
    assert to == [1, 3, 2]
    assert read_addresses(front)[0] == {
        "a": Address(True, (Share("g", "x"), Share("h", "#"))),
        "b": Address(False, (Share("k", "x"),)),
    }
    assert not addressing


def test_one_destination_needs_no_name() -> None:
    addressing = Addressing()
    addressing.add(2, Share("g", "x"))
    [(to, front)] = addressing.take([], 2, NAMES)
    assert (to, read_addresses(front)[0]) == ([2], {"": Address(False, (Share("g", "x"),))})


def test_very_many_groups_go_in_portions_and_each_once() -> None:
    addressing = Addressing()
    shares = [Share(f"g{number}", "x") for number in range(2 * MOST_GROUPS + 10)]
    for share in shares:
        addressing.add(1, share)
    addressing.add(2, shares[0])
    portions = list(addressing.take([1, 3], 1, NAMES))
    assert [to for to, _ in portions] == [[1, 3, 2], [1], [1]]
    found = [read_addresses(front)[0] for _, front in portions]
    assert [
        share for each in found for name in ("a", "") for share in each.get(name, Address(False, ())).shares
    ] == shares
    assert [each.get("a", each.get("", Address(True, ()))).is_plain for each in found] == [True, False, False]


def test_what_is_handed_on_says_who_had_it() -> None:
    addressing = Addressing()
    addressing.handing = Handing(("a", "here"), True)
    addressing.add(3, Share("g", "x"), is_handed_on=True)
    [(_, front)] = addressing.take([], 1, NAMES)
    assert read_addresses(front)[0][""] == Address(False, (Share("g", "x"),), ("a", "here"), True)
    addressing.add(3, Share("g", "x"))
    [(_, front)] = addressing.take([], 1, NAMES)
    assert read_addresses(front)[0][""].tried == ()
