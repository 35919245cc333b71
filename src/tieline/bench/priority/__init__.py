"""What ``tieline bench priority`` runs: urgent messages where everything else is too much.

``thin.py``, ``busy.py``, ``slow.py`` and ``cost.py`` are the four parts; ``nodes.py``, ``stage.py`` and
``packets.py`` are the clients they use, ``link.py`` the thin link; ``run.py`` puts the parts in order,
``goals.py`` judges, ``report.py`` and ``picture.py`` show.
"""
