"""Tables in the Delta format: executors write into the tables' places, and the driver commits which files count."""
