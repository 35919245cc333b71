"""What ``tieline bench pipeline`` runs: from a broker's log into tables, over tables, and through kill -9.

``readings.py`` makes up the data and ``station.py`` runs a broker with its log server.  There is one module for each
part: ``ingest.py`` (with ``tuples.py`` and ``memory.py``), ``ranges.py``, ``pruning.py``, ``growth.py``, and the
package ``crash``, whose cluster is in ``cluster.py``.  ``run.py`` puts the parts in order, ``goals.py`` judges,
``report.py`` shows.
"""
