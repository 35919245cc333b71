"""Finds the one sentence of ours in the many lines that Spark makes of an error.

What a source or a sink raises in a Python process reaches the driver as a Java exception whose text holds a Python
traceback, often several times, wrapped once by every layer on the way.
"""

from __future__ import annotations

import re
from typing import Final

#: The last line of a traceback that ends in one of our exceptions; sentences may go on over further lines.
_OURS: Final = re.compile(r"^(?:\s*Caused by: )?tieline\.[\w.]+\.[A-Z_]\w*: (?P<text>.+)$", re.MULTILINE)


def sentence(error: BaseException | str) -> str | None:
    """What our own code said in a Spark error; None if it said nothing."""
    found = _OURS.search(str(error))
    return found["text"].strip() if found else None
