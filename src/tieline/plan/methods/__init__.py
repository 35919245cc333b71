"""Ways to look for a plan: ours by size, and the paper's own heuristics, kept for comparison with it."""
