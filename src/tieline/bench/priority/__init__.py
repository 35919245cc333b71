"""What ``tieline bench priority`` runs: urgent messages where everything else is too much.

``thin.py``, ``busy.py``, ``slow.py`` and ``cost.py`` are the four parts; ``nodes.py`` and ``packets.py`` are the
clients they use, ``link.py`` the thin link.  ``effort.py`` says how much is done, ``cases.py`` in which order;
``suite.py`` says what the numbers mean and are to reach, ``picture.py`` draws them.
"""
