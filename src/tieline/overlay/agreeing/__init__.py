"""Brokers that agree on a plan among themselves, with nobody who knows the whole network.

``protocol`` is what they tell each other about offers, prices and joins, and ``planning_node`` what one of them makes
of it; the simulation of ``tieline.plan.distributed`` runs the same.  ``words`` are the notices in which that travels
between neighbours, a ``round`` goes from counting to ways on the ``inputs`` that its broker gives it, and ``agreeing``
is what a broker does about rounds.
"""
