"""``format("mqtt")``: any broker, through a spool, at least once."""
