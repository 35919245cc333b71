"""What ``tieline bench broker`` runs: the broker beside other brokers, on one machine, in one run.

``cases.py`` says what a workload is and lets the brokers take turns at each, ``workloads.py`` lists them; ``suite.py``
says which goals the numbers are held against, and how they are shown.
"""
