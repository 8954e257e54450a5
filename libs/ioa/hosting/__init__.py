"""Definitions of agents become processes."""
