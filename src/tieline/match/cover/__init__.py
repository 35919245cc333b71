"""Whose interest makes another's superfluous: covering of topic filters, of boxes, and of both together."""
