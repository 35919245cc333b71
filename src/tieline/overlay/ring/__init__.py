"""The ring where nobody can know everybody: brokers know a few others, and sums of what whole arcs want.

``identifiers`` says who stands where.  ``messages`` travel between brokers, ``events`` in them; a ``summary`` says what
a broker or an arc wants, and ``merging`` how two of them become one.  ``table`` is what a broker knows of others,
``upkeep`` keeps it true, and ``growth`` sees to it that nothing is acknowledged before everybody knows.  ``dispatch``
has the ways of sending a publication on, and ``promises`` what is owed.  ``node`` puts them together.
"""
