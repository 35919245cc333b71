"""What ``tieline bench plan`` runs: the paper's sizes, large networks, re-planning, bounds, brokers among themselves.

``effort.py`` says how much is measured, ``cases.py`` in which order, ``measures.py`` and ``bounds.py`` do it;
``suite.py`` says what the numbers mean and are to reach, ``picture.py`` draws them.
"""
