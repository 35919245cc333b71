"""What ``tieline bench pipeline`` runs: from a broker's log into tables, over tables, and through kill -9.

``readings.py`` makes up the data and ``station.py`` runs a broker with its log server.  There is one module for each
part: ``ingest.py`` (with the readers of ``sources.py``), ``ranges.py``, ``pruning.py``, ``growth.py`` and ``kills.py``,
whose ``publishers.py`` remember what was acknowledged and whose ``kills_proof.py`` holds the tables against it.
"""
