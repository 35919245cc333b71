"""Pages that people file."""
