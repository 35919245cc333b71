"""What ``tieline bench priority`` runs: urgent messages where everything else is too much.

``thin.py``, ``busy.py``, ``slow.py`` and ``cost.py`` are the four parts; ``nodes.py`` and ``packets.py`` are the
clients they use, ``link.py`` the thin link.  ``cases.py`` says how much is done, and in which order;
``suite.py`` says what the numbers mean, are to reach, and look like.
"""
