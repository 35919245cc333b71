"""Messages as tables, on Spark: source and sink, ingest, jobs, reports."""
