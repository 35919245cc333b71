"""What both HTTP servers share: the pages beside a broker, and the log server."""
