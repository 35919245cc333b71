"""Retained messages, the same at all brokers."""
