"""Many brokers as one: what travels between them, by which links, and how nothing is lost, doubled or reordered."""
