"""The paper's own heuristics, kept for comparison with ours."""
