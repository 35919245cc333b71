"""The tables of a lake without Spark: they are Parquet files, and DuckDB and pandas read them as they are.

    tieline sim microgrid --history week --start 2026-03-02 --days 1 --step 60
    tieline sim microgrid --config broker.toml
    tieline pipeline ingest --history week --config broker.toml --lake lake --once
    python read_the_lake.py lake

It prints, for that day::

    nodes: 15
    readings: 21600
    the lowest voltage was at C17
"""

import sys

import duckdb

lake = sys.argv[1] if len(sys.argv) > 1 else "lake"
readings = duckdb.read_parquet(f"{lake}/events/reading/**/*.parquet", hive_partitioning=True)
nodes, rows = readings.aggregate("count(DISTINCT node), count(*)").fetchall()[0]
print("nodes:", nodes)
print("readings:", rows)
lowest = readings.aggregate("arg_min(node, voltage)").fetchall()[0][0]
print("the lowest voltage was at", lowest)
