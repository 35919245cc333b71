"""Who may come in and what they may do: decisions without I/O, each carrying the rule that decided."""
