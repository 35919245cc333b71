"""One broker, without I/O: bytes and the time go in, bytes and changed connections come out."""
