"""Which topic travels over which link: instances, models, bounds, heuristics, and the proof that all of them pass."""
