"""The heuristic we ship: negotiated congestion, then a large neighbourhood search with sub-MIP polish."""
