"""What ``tieline reproduce`` runs: the experiments of three papers, on the real broker and the real planner.

``wanted_topics.py`` is Figure 2, ``feedback.py`` Figures 3 to 5 of the first priority paper; ``groups.py`` Figures 7
to 9 of the second; ``priority.py`` runs them and holds each sentence of the papers against what was measured.
``psp.py`` does the same for the planner's paper.  ``reproduction.py`` is what all of them share, ``figures.py`` draws.
"""
