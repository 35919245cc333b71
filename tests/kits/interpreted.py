"""What can be tested on plain Python alone: methods of compiled classes cannot be replaced, their lines not counted.

The same tests run in `make test`, on plain Python; `make test-compiled` leaves them out.
"""

from __future__ import annotations

from typing import Final

import pytest

from tieline.native import is_compiled

_FIXED: Final = "methods of compiled classes cannot be replaced"

#: For a test that puts a method, a constant or a class of its own in the place of one of the broker's.
replaces_methods = pytest.mark.skipif(is_compiled(), reason=_FIXED)


def skip_if_compiled(why: str = _FIXED) -> None:
    """For a test that comes to such a place on its way."""
    if is_compiled():
        pytest.skip(why)
