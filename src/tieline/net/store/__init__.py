"""The durable store: a writer process of its own around one SQLite file, and those who read that file."""
