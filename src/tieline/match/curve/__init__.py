"""The Hilbert curve through a grid of up to six dimensions: cells to keys, keys to cells, boxes to intervals of keys.

Whoever is near another on the curve is near it in the grid.  So an index sorted by key has neighbours side by side, and
a box of cells is a few intervals of keys instead of a list of cells.
"""

from tieline.match.curve.intervals import Ranges, cap, ranges
from tieline.match.curve.keys import cell, key

__all__ = ["Ranges", "cap", "cell", "key", "ranges"]
