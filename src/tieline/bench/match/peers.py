"""The broker as this benchmark starts it: with an event type, and with numba or as if that were not installed."""

from __future__ import annotations

from pathlib import Path

from tieline.bench.load.failure import Failure
from tieline.bench.match.shapes import EVENT_TYPE
from tieline.bench.peers.peer import Place
from tieline.bench.peers.tieline import Tieline

#: Programs that begin like this find no numba, however they look for it.
_WITHOUT = "import sys; sys.modules['numba'] = None; from tieline.cli.main import main; main()"


class Sifting(Tieline):
    """Tieline with an event type."""

    def __init__(self, *, has_numba: bool) -> None:
        self._has_numba = has_numba

    def command(self, place: Place) -> list[str]:
        """The default command, in an interpreter that may lack numba."""
        python, _module, _name, *arguments = super().command(place)
        with (place.directory / "tieline.toml").open("a") as config:
            config.write(EVENT_TYPE)
        return [python, "-m", "tieline", *arguments] if self._has_numba else [python, "-c", _WITHOUT, *arguments]


def check_numba(pid: int, *, is_expected: bool) -> None:
    """See whether a running broker has loaded numba's compiler, and fail if it is not as intended."""
    try:
        is_loaded = "llvmlite" in Path(f"/proc/{pid}/maps").read_text()
    except OSError as error:
        raise Failure(f"nothing is known about the broker's libraries: {error}") from error
    if is_loaded != is_expected:
        raise Failure(f"the broker {'has' if is_loaded else 'has not'} loaded numba; its rows would be mislabelled")
