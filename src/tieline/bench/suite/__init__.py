"""What all benchmarks share: how one is declared, run, written down, shown and drawn.

A benchmark is a :class:`~tieline.bench.suite.declaration.Suite`: what its numbers mean, which goals they are held
against, which tables and panels show them.  What is to be measured is a
:class:`~tieline.bench.suite.declaration.Schedule` of cases.  ``runner.py`` measures a schedule, ``results.py`` is what
comes out, ``report.py`` and ``picture.py`` show it.

To add a benchmark, follow ``tieline.bench.priority``: ``cases.py`` has the parts, the effort of a full and of a quick
run, and a function ``make_plan`` that says for every case which rows it fills, about how long it takes and what stands
in its way here; ``suite.py`` declares metrics, tables, goals and panels.  The command in ``tieline.cli.bench`` is its
options and one call.  ``tests/bench/test_suite.py`` has the smallest suite that works.
"""
