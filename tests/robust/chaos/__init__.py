"""Chaos on real processes: joined brokers that die, stand still and are cut off, between clients that remember."""
