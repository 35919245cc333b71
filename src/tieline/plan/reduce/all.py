"""Every exact reduction that applies, one after the other."""

from __future__ import annotations

from typing import Final

from tieline.plan.instance import Instance
from tieline.plan.reduce.chains import without_chains
from tieline.plan.reduce.pendant import without_pendants
from tieline.plan.reduce.reduction import Reduction, chained, unchanged

#: What leaves more than this share of an instance saves less than the way back costs.
_WORTHWHILE: Final = 0.95


def reduced(instance: Instance) -> Reduction:
    """The instance without pendant trees and chains; blocks are a matter of the solver."""
    pendants = without_pendants(instance)
    found = chained(pendants, without_chains(pendants.instance))
    # clients at the end of a link of their own are drawn in as well, which alone saves nothing
    return found if _size(found.instance) <= _WORTHWHILE * _size(instance) else unchanged(instance)


def _size(instance: Instance) -> int:
    return len(instance.nodes) + len(instance.links) + instance.request_count
