"""Brokers joined: what a hop costs, beside chains of other brokers; what many of them take; what happens when one dies.

``network.py`` starts brokers and their links, and relays between them that count; ``parts.py`` measures, ``suite.py``
declares metrics, tables and goals.
"""
