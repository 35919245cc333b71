"""Sessions that move between brokers."""
