"""What must survive the process: facts, the journal, and the records of the log."""
