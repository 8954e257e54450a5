"""NATS: the one package that imports its client."""
