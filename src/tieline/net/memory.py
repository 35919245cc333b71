"""Memory of one buffer is kept for the next: otherwise the system clears every page of it anew.

The C library gives large pieces back as soon as they are free.  The log server needs a few of some megabytes for each
batch, and the next one needs the same; asking for them again took a tenth of its time.  The broker reads a flood in
chunks of 256 kB and copies what is in them: 64 pages for each, which cost more to find and to clear than the messages
to route (three quarters of the time for a stream of 1 kB messages).
"""

from __future__ import annotations

import ctypes
from typing import Final

#: Parameters of glibc's ``mallopt``, as its ``malloc.h`` numbers them.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
#: glibc takes no more for the size of pieces that it keeps.
LARGEST: Final = 32 << 20


def keep(largest: int, unused: int) -> bool:
    """Have the C library keep memory, for the rest of the process; False where it is not glibc.

    Pieces above ``largest`` bytes go back to the system at once, and so much may lie ``unused`` at the end of a
    thread's memory.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, largest)) and bool(mallopt(_TRIM_THRESHOLD, unused))
