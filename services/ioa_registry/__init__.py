"""The registry: who exists and who is alive."""
