"""The real things behind the ports: NATS, SQLite, processes."""
