"""Regions of brokers behind gateways in virtual time: cores and nodes as they are shipped, on invented wires."""
