"""What ``tieline reproduce`` runs: the experiments of the papers behind Tieline, each a folder of its own.

A folder holds a declaration (``PAPER``), whatever computes its tables, and ``reading.md``, the prose of its page.
``frame/`` is what all of them share, and ``registry.py`` knows them by name.  Experiments run on the real broker, the
real planner and the simulators; nothing is computed for a figure alone.
"""
