"""What ``tieline bench`` runs: the broker beside other brokers, on one machine, in one run.

``peers/`` starts the brokers, ``load/`` drives them from a process of its own, ``workloads/`` says what is
asked of them, ``run.py`` interleaves, and ``report.py``, ``picture.py`` and ``record.py`` show what came out.
"""
