"""One peer: its connections come and go, what waits for it, and what it has cost."""
