"""What ``tieline bench broker`` runs: the broker beside other brokers, on one machine, in one run.

``workload.py`` says what a workload is, ``saturated.py`` and ``workloads.py`` list them; ``cases.py`` lets the brokers
take turns at each; ``suite.py`` says which goals the numbers are held against, and how they are shown.
"""
