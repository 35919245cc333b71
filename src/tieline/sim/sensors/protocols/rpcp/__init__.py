"""RPCP: a tree of clusters whose heads keep covering tables.

``backbone.py`` has the tables and what is said over links, ``hand_over.py`` the change of a head, ``upkeep.py``
elections, digests and repair, ``protocol.py`` what becomes of an event.
"""
