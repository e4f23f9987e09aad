"""libcpufree: its binary interface, and calls of it from Python."""
