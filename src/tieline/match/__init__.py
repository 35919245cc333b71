"""Who wants it: topic filters and topic names, looked up by each other."""
