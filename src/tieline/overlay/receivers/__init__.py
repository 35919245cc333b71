"""Where a core meets other brokers: they are receivers on its routes, and publishers."""
