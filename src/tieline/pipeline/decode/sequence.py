"""The user property ``seq`` of many records: the number that a publisher gave a message, and its run.

``seq`` is ``NUMBER`` or ``RUN/NUMBER``, unique within a publisher's client id and run.  A publisher that forgets its
count when it starts again begins another run.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieline.wire.properties import user_properties

NAME: Final = "seq"
#: A user property of this name, as it is on the wire: its identifier, the length of its name, its name.
_MARK: Final = b"\x26\x00\x03seq"
#: The mark and the two bytes that say how long the value is.
_HEAD: Final = len(_MARK) + 2
_SPELLING: Final = r"^(?:(?P<run>(?s:.*))/)?0*(?P<number>[0-9]{1,19})$"
#: A column of 64 bits holds the number.
_MOST: Final = 2**63 - 1


def texts(raw_properties: pa.Array) -> pa.Array:
    """The value of ``seq`` for each record; null without.  Of several the last counts, as for attributes."""
    has = _true(pc.greater_equal(pc.find_substring(raw_properties, _MARK), 0))
    if not has.any():
        return pa.nulls(len(raw_properties), pa.string())
    alone = _alone(raw_properties)
    values = pa.nulls(len(raw_properties), pa.binary())
    if alone.any():
        here = raw_properties.filter(pa.array(alone))
        # pyarrow reserves memory for the longest slice that could be, and fails without an end
        here = pc.binary_slice(here, _HEAD, max(_HEAD, pc.max(pc.binary_length(here)).as_py()))
        values = pc.replace_with_mask(values, pa.array(alone), here)
    others = np.flatnonzero(has & ~alone)
    if len(others) == 0:
        return values.cast(pa.string())
    found = values.cast(pa.string()).to_pylist()
    for place in others.tolist():
        found[place] = dict(user_properties(raw_properties[place].as_py())).get(NAME)
    return pa.array(found, pa.string())


def numbers(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Run and number of each value; both null where there is none, or one that is not written as it should be."""
    parts = pc.extract_regex(values, _SPELLING)
    digits = pc.if_else(pc.is_valid(parts), pc.struct_field(parts, "number"), pa.scalar(None, pa.string()))
    if _true(pc.equal(pc.binary_length(digits), len(str(_MOST)))).any():
        small = [each if each is not None and int(each) <= _MOST else None for each in digits.to_pylist()]
        digits = pa.array(small, pa.string())
    run = pc.if_else(pc.is_valid(digits), pc.struct_field(parts, "run"), pa.scalar(None, pa.string()))
    return run, digits.cast(pa.int64())


def _alone(raw: pa.Array) -> NDArray[np.bool_]:
    """Whether the properties of each record are this one and nothing else: its length says that they end with it.

    That is what most publishers send, and needs no walk through the properties.
    """
    begins = _true(pc.starts_with(raw, _MARK))
    heads = pc.binary_slice(raw, len(_MARK), _HEAD)
    begins &= _true(pc.equal(pc.binary_length(heads), 2))
    length = pc.fill_null(pc.binary_length(raw), 0).to_numpy(zero_copy_only=False) - _HEAD
    said = np.zeros(len(raw), np.int64)
    said[begins] = np.frombuffer(b"".join(heads.filter(pa.array(begins)).to_pylist()), ">u2")
    return np.asarray(begins & (said == length), bool)


def _true(condition: pa.Array) -> NDArray[np.bool_]:
    """Where a condition holds; null is no."""
    return np.asarray(pc.fill_null(condition, fill_value=False).to_numpy(zero_copy_only=False), bool)
