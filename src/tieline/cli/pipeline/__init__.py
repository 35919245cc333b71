"""``tieline pipeline``: a list of jobs, each loaded when it is called, because Spark is slow to import."""

from __future__ import annotations

from typing import Final

from tieline.cli.verbs import Verb, add_verbs, new_app

JOBS: Final[tuple[Verb, ...]] = (
    ("ingest", "ingest", "Bring brokers' logs into tables, continuously or once."),
    ("compact", "lake:compact_app", "Merge small files, sort them anew, remove what is too old."),
    ("status", "lake:status_app", "Say what the tables hold and how far ingest has come."),
    ("register", "register", "Enter the tables into Spark's catalogue, for SQL."),
    ("package", "package", "Pack what executors import, for clusters where it is not installed."),
    ("files", "lake:files_app", "List the files that are a table."),
    ("quality", "quality", "Judge voltage and frequency by EN 50160, and write the report."),
    ("heat", "heat", "Find the hot topics, and tell the broker."),
    ("latency", "deliveries:latency_app", "Hold waiting times against what IEC 61850 and IEEE 1646 allow."),
    ("traffic", "deliveries:traffic_app", "Measure who sends what to whom, and write an instance for the planner."),
    ("match", "match", "Say what subscriptions would have delivered from the tables."),
    ("simulate-load", "simulate_load", "Publish what the tables hold to a broker, at a chosen speed."),
)

app = new_app("Messages as tables, on Spark.")
add_verbs(app, JOBS, package="tieline.cli.pipeline", program="tieline pipeline")
