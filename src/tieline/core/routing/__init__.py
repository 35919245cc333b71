"""From a topic to its receivers: filters, conditions, groups, and how urgent a message is."""
