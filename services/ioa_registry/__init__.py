"""Registry: who exists and who is alive."""
