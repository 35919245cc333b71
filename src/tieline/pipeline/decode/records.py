"""What a row keeps of its record: the columns of ours, or the whole record where it could not be read.

Among ours is ``seq``, a user property: the number that a publisher gave the message, and the run that it counts in.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieline.pipeline.lake.columns import OURS, RECORD
from tieline.wire.properties import user_properties

SEQ: Final = "seq"
#: A user property of this name, as it is on the wire: its identifier, the length of its name, its name.
_MARK: Final = b"\x26\x00\x03seq"
#: The mark and the two bytes that say how long the value is.
_HEAD: Final = len(_MARK) + 2
_SPELLING: Final = r"^(?:(?P<run>(?s:.*))/)?0*(?P<number>[0-9]{1,19})$"
#: A column of 64 bits holds the number.
_MOST: Final = 2**63 - 1


def seq_texts(raw_properties: pa.Array) -> pa.Array:
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
        found[place] = dict(user_properties(raw_properties[place].as_py())).get(SEQ)
    return pa.array(found, pa.string())


def seq_numbers(values: pa.Array) -> tuple[pa.Array, pa.Array]:
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


#: The columns of a record that decoding needs.  Spark converts what it is asked for row by row, so the nested ones,
#: which the raw properties and the payload repeat, are not asked for.
NEEDED: Final = tuple(name for name in RECORD.names if name not in ("properties", "event"))


def ours(records: pa.Table, time: pa.Array | None = None) -> pa.Table:
    """Our columns of some records; event time is the given one, or when the record was received."""
    received = records["received"].combine_chunks()
    if time is None or not pa.types.is_timestamp(time.type):
        time = received
    columns = {
        "_offset": records["offset"],
        "_shard": records["shard"],
        "_received": received,
        "_time": pc.coalesce(time, received),
        "_topic": records["topic"],
        "_publisher": records["publisher"],
        "_level": records["level"].cast(pa.int32()),
        "_class": records["class"],
        "_qos": records["qos"].cast(pa.int32()),
        "_seq": seq_texts(records["raw_properties"].combine_chunks()),
        "_hilbert": pa.nulls(len(records), pa.int64()),
    }
    return pa.table(columns, schema=OURS)


def quarantined(records: pa.Table, event: str, reasons: list[str]) -> pa.Table:
    """Whole records, with why each is none of its event type."""
    return whole(records, [event] * len(records)).append_column("reason", pa.array(reasons, pa.string()))


def duplicated(
    records: pa.Table, names: list[str | None], reasons: list[str], first_offsets: list[int | None]
) -> pa.Table:
    """Whole records, with how it is known that each repeats another, and which one if that is known."""
    found = whole(records, names).append_column("reason", pa.array(reasons, pa.string()))
    return found.append_column("first_offset", pa.array(first_offsets, pa.int64()))


def whole(records: pa.Table, names: list[str | None] | list[str]) -> pa.Table:
    """All columns of some records but the map of attributes, as tables keep them."""
    pairs = [user_properties(block) for block in records["raw_properties"].to_pylist()]
    derived = {
        "properties": pa.array(
            [[{"key": key, "value": value} for key, value in each] for each in pairs], RECORD.field("properties").type
        ),
        "event": pa.array(names, pa.string()),
    }
    return pa.table({name: derived[name] if name in derived else records[name] for name in RECORD.names}, schema=RECORD)
