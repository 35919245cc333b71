"""What all benchmarks share: how one is declared, run, written down, shown and drawn.

A benchmark is a :class:`~tieline.bench.suite.declaration.Suite`: what its numbers mean, which goals they are held
against, which tables and panels show them.  What is to be measured is a :class:`~tieline.bench.suite.declaration.Plan`
of cases.  ``runner.py`` measures a plan, ``record.py`` is what comes out, ``report.py`` and ``picture.py`` show it.
"""
