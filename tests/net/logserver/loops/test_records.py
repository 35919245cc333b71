"""Records taken apart: every value is found where it stands, and what only claims to be there is not."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.log.record import Record
from tieline.net.logserver.loops import records
from tieline.net.logserver.loops.records import Places

FIELDS = Record.__struct_fields__[:-1]

short = st.text(max_size=40)
some_bytes = st.binary(max_size=300)
whole = st.integers(0, 127) | st.integers(-(2**63), 2**63 - 1)
anything = st.recursive(
    st.none() | st.booleans() | whole | st.floats(allow_nan=False) | short | some_bytes,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(short, inner, max_size=20),
    max_leaves=30,
)
attributes = st.none() | st.dictionaries(short, anything, max_size=3)
arrays = st.tuples(
    whole, short, whole, whole, st.booleans(), whole, st.booleans(), whole, short, short, *[some_bytes] * 3
).flatmap(lambda known: st.just(list(known)) | st.lists(anything, max_size=3).flatmap(
    lambda later: attributes.map(lambda found: [*known, found, *later])
))  # fmt: skip


def walked(blob: bytes, counts: list[int], sizes: list[int], wanted: int) -> Places | None:
    ends = np.cumsum(sizes)
    groups = np.stack([ends - sizes, ends, np.array(counts)], axis=1)
    starts = np.full((wanted, sum(counts)), -2, np.int32)
    return starts if records.walk(np.frombuffer(blob, np.uint8), groups, starts) else None


def value_at(blob: bytes, place: int) -> Any:
    """The value that begins at a place: the shortest bytes that are one."""
    for end in range(place + 1, len(blob) + 1):
        try:
            return msgspec.msgpack.decode(blob[place:end])
        except msgspec.DecodeError:
            continue
    raise AssertionError("there is no value")


@examples(60)
@given(st.lists(st.lists(arrays, min_size=1, max_size=3), min_size=1, max_size=3), st.integers(1, len(FIELDS)))
def test_every_value_is_found(parts: list[list[list[Any]]], wanted: int) -> None:
    blobs = [msgspec.msgpack.encode(part) for part in parts]
    blob = b"".join(blobs)
    starts = walked(blob, list(map(len, parts)), list(map(len, blobs)), wanted)
    assert starts is not None
    for row, array in enumerate(each for part in parts for each in part):
        for field in range(wanted):
            if field < len(array):
                assert value_at(blob, int(starts[field, row])) == array[field]
            else:
                assert starts[field, row] == -1


@examples(60)
@given(st.lists(arrays, min_size=1, max_size=2), st.data())
def test_what_ends_too_early_is_refused(part: list[list[Any]], data: st.DataObject) -> None:
    blob = msgspec.msgpack.encode(part)
    cut = data.draw(st.integers(0, len(blob) - 1))
    # what stands behind the end belongs to somebody else
    assert walked(blob, [len(part)], [cut], 1) is None


@pytest.mark.parametrize(
    "claim",
    [*(head + b"\xff" * 4 for head in (b"\xdd", b"\xdf", b"\xdb", b"\xc6")), b"\xcf", b"\xc1"],
    ids=["array", "map", "text", "bytes", "number", "reserved"],
)
def test_claims_are_not_believed(claim: bytes) -> None:
    known = msgspec.msgpack.encode([1, "a", 1, 1, False, 1, False, 0, "n", "t", b"p", b"", b"d"])[1:]
    blob = b"\x91\x9f" + known + b"\xc0" + claim
    assert walked(blob, [1], [len(blob)], 1) is None
