"""Rings of ten to ten thousand brokers in virtual time: the shipped code on links that take time, and who dies when.

``network`` carries messages, ``founding`` puts a whole ring together at once, ``workload`` says who wants what and what
is published, and ``measure`` counts what becomes of it.  ``churn`` has brokers come and go, ``topics`` is what the
ring paper compares conditions with.
"""
