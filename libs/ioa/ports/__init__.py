"""What the core needs from outside, as small protocols owned by their callers."""
