"""The registry: registration and liveness of agents."""
