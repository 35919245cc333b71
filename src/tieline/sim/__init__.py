"""Worlds that publish, made of physics and a seed."""
