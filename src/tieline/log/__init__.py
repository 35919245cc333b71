"""What the log keeps, as records and as columns."""
