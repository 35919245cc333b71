"""Where the parts of a PUBLISH stand, without decoding it.

A broker that passes bytes on needs to know where the topic stands and where the packet ends, and nothing else.  What is
unusual about a packet is not judged here: it is decoded (:mod:`tieline.wire.decode`), which finds words for it.
"""

from __future__ import annotations

#: The shortest PUBLISH that is looked at: two bytes of header, two of length, a topic of one byte.
LEAST = 5


def publish_head(data: bytes, pos: int, size: int) -> tuple[int, int, int] | None:
    """Where the topic of the PUBLISH at ``pos`` begins and ends, and where the packet ends.

    The packet may end beyond ``size``, the length of the data.  None if its length has a fourth byte or an unusual
    form, if its header is not complete, or if the topic does not fit into it.
    """
    body = pos + 2
    if body + 2 >= size:
        return None
    length = data[pos + 1]
    if length > 127:
        more = data[body]
        body += 1
        length = (length & 127) | (more & 127) << 7
        if more > 127:
            last = data[body]
            body += 1
            if not 0 < last < 128:
                return None
            length |= last << 14
        elif not more:
            return None
        if body + 1 >= size:
            return None
    start = body + 2
    top = start + (data[body] << 8 | data[body + 1])
    end = body + length
    return (start, top, end) if top <= end else None
