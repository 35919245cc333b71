"""Memory of one batch is kept for the next: otherwise the system clears every page of it anew.

The C library gives large pieces back as soon as they are free.  A batch needs a few of some megabytes for a moment, and
the next one needs the same; asking for them again took a tenth of the server's time.  What is kept is no more than what
was once in use at the same time, which :class:`tieline.net.logserver.app.Bounds` limits.
"""

from __future__ import annotations

import ctypes
from typing import Final

#: Parameters of glibc's ``mallopt``, as its ``malloc.h`` numbers them.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
#: Larger pieces go back to the system at once; glibc takes no more for this.
_LARGEST: Final = 32 << 20
#: So much may lie unused at the end of a thread's memory.
_UNUSED: Final = 64 << 20


def keep() -> bool:
    """Have the C library keep memory, for the rest of the process; False where it is not glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, _UNUSED))
