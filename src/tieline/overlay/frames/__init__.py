"""How brokers talk: the bytes of the link protocol, and what travels in them."""
