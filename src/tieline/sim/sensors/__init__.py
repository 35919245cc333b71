"""A sensor network in virtual time: nodes with batteries, mobile sinks, and the protocols that carry events to them.

``parameters.py`` has every number that shapes a result, ``world.py`` what is the same for all protocols.  The medium is
``air.py`` (arrays), ``batteries.py``, ``queues.py``, ``hops.py``, ``slots.py`` and ``routes.py`` (compiled loops) and
``radio.py``, through which protocols use it; it alone spends energy.  ``protocol.py`` is what every protocol answers;
``protocols/`` has them, made of ``clusters.py``, ``tables.py`` and ``pacing.py``.  ``simulation.py`` runs,
``outcome.py`` counts.
"""
