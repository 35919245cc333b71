"""What ``tieline bench match`` runs: content subscriptions, from the index alone to a broker with sockets.

``workload.py`` makes boxes and events, ``engines.py`` everything that can say which boxes contain an event;
``search.py`` measures their answers and ``update.py`` their changes.  ``shapes.py`` lays subscriptions out over topics
and ``broker.py`` drives brokers with them.  ``run.py`` puts the parts in order, ``goals.py`` judges, ``report.py`` and
``picture.py`` show.
"""
