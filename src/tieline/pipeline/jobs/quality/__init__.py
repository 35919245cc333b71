"""Voltage and frequency held against EN 50160: means, incidents, zones and verdicts, for each node and week."""
