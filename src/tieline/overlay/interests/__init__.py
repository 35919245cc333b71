"""What each broker wants: entries, as they are said, known and kept."""
