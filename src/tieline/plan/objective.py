"""What a plan is worth: the cost of its links and the price of the requests that it leaves unmet.

With ``unmet_cost`` that is what each unmet request adds.  Without it the order is lexicographic: serve as many requests
as possible, weighted by class, then save cost.  Both are one number: without ``unmet_cost`` an unmet request of
weight 1 is priced above the dearest plan there can be, so that no saving outweighs it.
"""

from __future__ import annotations

import math
from typing import Final

from tieline.plan.instance import Instance, Topic

#: The weight of an unmet request by the class of its topic, 0 to 3.
CLASS_WEIGHTS: Final = (1.0, 2.0, 4.0, 8.0)


def weight(topic: Topic) -> float:
    """How much an unmet request of the topic counts among other unmet ones."""
    return CLASS_WEIGHTS[topic.level]


def unmet_price(instance: Instance) -> float:
    """The price of one unmet request of weight 1."""
    return dearest_plan(instance) + 1.0 if instance.unmet_cost is None else instance.unmet_cost


def request_price(instance: Instance, topic: Topic) -> float:
    """The price of one unmet request of a topic; a stated ``unmet_cost`` is the same for all."""
    price = unmet_price(instance)
    return price * weight(topic) if instance.unmet_cost is None else price


def dearest_plan(instance: Instance) -> float:
    """No plan costs more: every request over a loop-free way through the dearest links."""
    brokers = sum(node.is_broker for node in instance.nodes)
    costs = sorted((link.cost for link in instance.links), reverse=True)
    # rounded up, so that prices of instances with whole costs stay whole and exact in a float
    return float(math.ceil(instance.request_count * sum(costs[: brokers + 1])))


def has_whole_costs(instance: Instance) -> bool:
    """Whether every plan's objective is a whole number, so that bounds may be rounded up."""
    amounts = [link.cost for link in instance.links]
    if instance.unmet_cost is not None:
        amounts.append(instance.unmet_cost)
    return all(float(amount).is_integer() for amount in amounts)
