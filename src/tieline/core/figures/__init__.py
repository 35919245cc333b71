"""What the broker tells of itself in numbers: its $SYS topics, its classes, and what it is asked to carry."""
