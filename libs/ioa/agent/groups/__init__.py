"""Groups of one agent: follow their logs, take turns, and remember."""
