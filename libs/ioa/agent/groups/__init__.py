"""Groups of an agent: follow their logs, take turns, and remember."""
