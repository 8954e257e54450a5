"""Connections to NATS: client, parser, publishing, reconnects, and the embedded server."""
