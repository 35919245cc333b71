"""Part ``crash``: everything between a publisher and the tables is killed at random, and no message is lost or double.

``publishers.py`` sends numbered messages and remembers what was acknowledged; ``ordeal.py`` runs the processes and
kills them; ``proof.py`` holds the tables against the publishers' memory, in Spark and in DuckDB.
"""
