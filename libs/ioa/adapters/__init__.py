"""Implementations of the ports: NATS, SQLite, processes."""
