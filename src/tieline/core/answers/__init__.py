"""Questions about the broker, answered from its state without changing it."""
