"""What ``tieline reproduce priority`` runs: the experiments of the two priority papers, on the real broker.

``heat.py`` is Figure 2, ``feedback.py`` Figures 3 to 5 of the first paper; ``groups.py`` Figures 7 to 9 of the second.
``claims.py`` holds each sentence of the papers against what was measured, ``figures.py`` draws.
"""
