"""A whole system on one machine."""
