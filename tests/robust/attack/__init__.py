"""Attacks on a broker process, and what honest clients notice of them: ``make attack``."""
