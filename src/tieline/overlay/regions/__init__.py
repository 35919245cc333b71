"""Regions of brokers behind gateways, which are brokers of their region and of the group of all gateways."""
