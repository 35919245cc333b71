"""The only place that touches sockets, TLS, WebSocket, clocks and files: a thin shell around the core."""
