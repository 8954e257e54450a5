"""Liveness, outcomes and search of agents."""
