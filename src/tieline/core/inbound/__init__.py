"""From a chunk of bytes to what it asks for: packets and their handlers."""
