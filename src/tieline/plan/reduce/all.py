"""Every exact reduction that applies, one after the other."""

from __future__ import annotations

from tieline.plan.instance import Instance
from tieline.plan.reduce.chains import without_chains
from tieline.plan.reduce.pendant import without_pendants
from tieline.plan.reduce.reduction import Reduction, chained


def reduced(instance: Instance) -> Reduction:
    """The instance without pendant trees and chains; blocks are a matter of the solver."""
    pendants = without_pendants(instance)
    return chained(pendants, without_chains(pendants.instance))
