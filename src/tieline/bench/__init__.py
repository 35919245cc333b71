"""What ``tieline bench`` and ``tieline reproduce`` run, on one machine, each in one run.

``suite/`` is what all benchmarks share: declaration, runner, results, report, picture.  ``brokers.py`` knows the
brokers, ``peer.py`` and ``process.py`` start them, and ``load/`` drives them from a process of its own.  Each of the
others is one benchmark: ``broker/``, ``priority/``, ``match/``, ``overlay/``, ``pipeline/``, ``plan/``; ``papers/``
repeats the experiments of the papers.
"""
