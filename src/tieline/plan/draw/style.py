"""How the pictures look: colours, sizes, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap

INK: Final = "#1f2933"
QUIET: Final = "#7b8794"
#: A link that carries nothing.
UNUSED: Final = "#d5dae0"
BROKER: Final = "#27364a"
PUBLISHER: Final = "#0b7a5b"
SUBSCRIBER: Final = "#ffffff"
SUBSCRIBER_EDGE: Final = "#3d5a80"
UNMET: Final = "#b5179e"
#: A link that carries something and has no limit.
LIMITLESS: Final = "#52606d"
#: A link of a network without a plan.
CAPACITY: Final = "#a9b4c0"
#: From idle to full.  Lightness falls all the way, so that it can be read in grey and by every eye.
_RAMP: Final = ("#f0dca0", "#f2ab3c", "#dd5f1e", "#8a1a12")

#: Points, in a picture with room.
THINNEST, WIDEST = 1.1, 6.5


def utilisation_colours() -> LinearSegmentedColormap:
    """The colour of a link by the share of its capacity that is used."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("utilisation", list(zip((0.0, 0.5, 0.8, 1.0), _RAMP, strict=True)))


def width_of(load: float, greatest: float, widest: float = WIDEST) -> float:
    """Points for a link that carries so much; by the root, since loads differ by orders of magnitude."""
    return THINNEST + (widest - THINNEST) * (max(load, 0.0) / greatest) ** 0.5 if greatest > 0 else THINNEST
