"""What ``tieline bench match`` runs: content subscriptions, from the index alone to a broker with sockets.

``workload.py`` makes boxes and events, ``engines.py`` everything that can say which boxes contain an event;
``index_jobs.py`` measures their answers and their changes.  ``shapes.py`` lays subscriptions out over topics and
``broker.py`` drives brokers with them.  ``cases.py`` says how much of this is done and in which order, and
``suite.py`` what the numbers mean, are to reach, and look like.
"""
