"""The load generator: raw sockets, packets encoded beforehand, bytes counted; one process of its own."""
