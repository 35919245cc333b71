"""Bytes to packets and back: MQTT 3.1.1 and 5, without any I/O."""
