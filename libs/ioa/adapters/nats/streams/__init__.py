"""Streams of JetStream: creation, reading, listing and removal."""
