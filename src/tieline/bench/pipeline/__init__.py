"""What ``tieline bench pipeline`` runs: from a broker's log into tables, over tables, and through kill -9.

``part.py`` says what a part is, and ``cases.py`` how much of each is done.  ``readings.py`` makes up the data;
``sources.py`` runs a broker with its log server, and has the readers that ``ingest.py`` compares; ``formats.py`` lets
the same log become tables of each kind.  The other parts are ``ranges.py`` (match), ``tables.py`` (pruning and growth),
``jobs.py`` and ``kills.py``, whose ``publishers.py`` remember what was acknowledged, whose ``power.py`` lets the
machine lose what nobody has synchronised, and whose ``kills_proof.py`` holds the tables against it.
"""

from __future__ import annotations

from typing import Final

#: The parts of the benchmark; whoever asks for their names does not need what they measure.
PARTS: Final = {
    "ingest": "a broker's log into Spark, as Arrow batches and as tuples, and into tables",
    "formats": "a log into plain tables, Delta tables, Delta tables behind an S3 API; the memory of the driver",
    "match": "events in ranges of four attributes: our job, a nested-loop join, one process with the same index",
    "pruning": "bytes read for a query of three ranges, of a Hilbert-clustered table and of one sorted by time",
    "growth": "whether the time of ingest is a straight line of the rows",
    "jobs": "commands over a lake from cold: the report of a week, hot content, subscriptions",
    "kills": "kills of driver, executor, worker, broker, log server, machine: nothing lost, nothing twice",
}
