"""What the reproductions of all papers share: how one is declared, judged, run, drawn, and written as a page.

``table.py`` is data in long form, ``verdicts.py`` the rules by which a claim holds or not, ``declaration.py`` what a
paper consists of.  ``runner.py`` carries a paper out, ``drawing.py`` is the one style of all figures, ``record.py``
what a run leaves behind, and ``page.py`` makes a page of that, from nothing else.
"""
