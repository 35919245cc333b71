"""The log server: a read-only process beside the broker that streams ranges of its log as Arrow over HTTP."""
