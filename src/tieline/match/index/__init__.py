"""Which of many boxes contain a point: one protocol, three ways to answer, and a choice between them by size.

:class:`AdaptiveIndex` is what others use.  Modules that need numpy or numba are imported when there are boxes enough.
"""

from tieline.match.index.adaptive import AdaptiveIndex, Rebuild
from tieline.match.index.protocol import Boxes, Index

__all__ = ["AdaptiveIndex", "Boxes", "Index", "Rebuild"]
