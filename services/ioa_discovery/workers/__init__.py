"""Child processes that answer requests, and their pipes."""
