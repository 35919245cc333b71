"""What one client, or eight, do to a broker on purpose; a file for each thing that they abuse."""
