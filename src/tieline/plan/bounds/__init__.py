"""Lower bounds of the objective: the paper's, which is none, and valid ones."""
