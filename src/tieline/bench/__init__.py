"""What ``tieline bench`` and ``tieline reproduce`` run, on one machine, each in one run.

``suite/`` is what all benchmarks share: declaration, runner, record, report, picture.  ``peers/`` starts brokers and
``load/`` drives them from a process of its own.  Each of the others is one benchmark: ``broker/``, ``priority/``,
``match/``, ``pipeline/``, ``plan/``; ``papers/`` repeats the experiments of the papers.
"""
